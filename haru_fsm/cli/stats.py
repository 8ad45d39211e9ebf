"""`haru stats`: figures over what is stored."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import complain, counted, say, say_json, show
from haru_fsm.cli.progress import counting
from haru_fsm.cli.wiring import Given, known, run
from haru_fsm.errors import JournalDamaged

if TYPE_CHECKING:
    from collections import Counter

    from rich.table import Table

    from haru_fsm.cli.figures import Figures
    from haru_fsm.stores import Record, Store


def stats(
    conversation_id: options.MaybeConversationId = None,
    customer: options.MaybeCustomer = None,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Figures over all conversations, or over one.

    Endings, and what had stopped the runs that ended in a ticket; guard trips and failures; tokens and money by model
    and by day; tokens and ms per step; calls and p50/p95 per tool. Tokens marked with ~ were estimated, because no
    provider counted them; money is that of the requests whose price was known. What a fork shares with its parent is
    counted once, unless it is asked for alone.
    """
    figures, damaged = run(_figures(Given(app, db), conversation_id, customer))
    if as_json:
        say_json({**figures.as_object(), "damaged": damaged})
    else:
        show_figures(figures)
    for message in damaged:
        complain(message)
    return exits.FAILED if damaged else exits.OK


async def _figures(given: Given, conversation_id: str | None, customer: str | None) -> tuple[Figures, list[str]]:
    """The figures, and what is wrong with journals that could not be read: one must not hide the others."""
    from haru_fsm.cli.figures import Figures

    figures, damaged = Figures(), list[str]()
    async with given.store() as store:
        if conversation_id is not None:
            ids = [conversation_id]
        else:
            ids = [summary.conversation_id for summary in await store.conversations(customer_id=customer)]
        with counting("reading conversations") as progress:
            for done, one in enumerate(ids):
                progress(done, len(ids))
                try:
                    record = await known(store, one)
                except JournalDamaged as error:
                    damaged.append(str(error))
                    continue
                # Of one conversation all is told; of many, what two of them share was spent once.
                figures.add(record.steps, shared=await _shared(store, record) if conversation_id is None else 0)
    return figures, damaged


async def _shared(store: Store, record: Record) -> int:
    """How many of its steps a conversation shares with the one that it was forked from, where that is still there."""
    from haru_fsm.cli.figures import shared_with

    parent = record.summary.parent
    with suppress(JournalDamaged):
        before = await store.load(parent) if parent is not None else None
        return shared_with(before.steps, record.steps) if before is not None else 0
    return 0


# --------------------------------------------------------------------------- for people


def show_figures(figures: Figures) -> None:
    """The figures as tables."""
    runs = counted(figures.endings.total(), "run")
    say(f"{counted(figures.conversations, 'conversation')}, {runs}: {_counted(figures.endings)}")
    say(f"tickets by reason: {_counted(figures.tickets)}")
    say(f"guards tripped: {_counted(figures.guards)}")
    say(f"model failures: {_counted(figures.failures)}")
    if figures.usd_per_run:
        say(_per_run(figures.usd_per_run))
    if figures.spent.requests:
        show(_models(figures), _states(figures), *([_tools(figures)] if figures.tools else []), _days(figures))


def _per_run(usd: list[float]) -> str:
    from haru_fsm.cli.figures import spread
    from haru_fsm.cli.timeline import money

    told = spread(usd)
    return f"money: {money(told['total'])}, of a run {money(told['p50'])} (p50), {money(told['p95'])} (p95)"


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counter.most_common()) or "none"


def _models(figures: Figures) -> Table:
    made = _spending("model")
    for name, spent in {**figures.models, "all": figures.spent}.items():
        _spend(made, name or "?", spent)
    return made


def _days(figures: Figures) -> Table:
    made = _spending("day")
    for name, spent in sorted(figures.days.items()):
        _spend(made, name, spent)
    return made


def _spending(what: str) -> Table:
    from haru_fsm.cli.timeline import table

    figures = ("requests", "prompt", "cached", "thoughts", "tool", "answer", "tokens", "cost")
    return table(what, *figures, right=figures)


def _spend(made: Table, name: str, spent: object) -> None:
    from haru_fsm.cli.figures import Spent
    from haru_fsm.cli.timeline import figure, money, row

    assert isinstance(spent, Spent)
    usage = spent.usage
    parts = (spent.requests, usage.prompt, usage.cached, usage.thoughts, usage.tool, usage.answer)
    row(made, name, *(f"{part:,}" for part in parts), figure(usage), money(usage.cost_usd))


def _states(figures: Figures) -> Table:
    from haru_fsm.cli.timeline import row, table

    columns = ("steps", "ms", "ms p50", "ms p95", "tokens p50", "tokens p95")
    made = table("work in state", *columns, right=columns)
    for name, work in figures.states.items():
        told = work.as_object()
        ms, tokens = told["ms"], told["tokens"]
        both = (tokens["p50"], tokens["p95"]) if work.tokens else ("", "")
        row(made, name, told["steps"], f"{ms['total']:,}", ms["p50"], ms["p95"], *both)
    return made


def _tools(figures: Figures) -> Table:
    from haru_fsm.cli.timeline import row, table

    columns = ("calls", "ran", "failed", "not done", "in doubt", "repeated", "repaired", "ms p50", "ms p95")
    made = table("tool", *columns, right=columns)
    for name, use in figures.tools.items():
        told = use.as_object()
        keys = (column.replace(" ", "_") for column in columns[:-2])
        row(made, name, *(told[key] for key in keys), told["ms"]["p50"], told["ms"]["p95"])
    return made
