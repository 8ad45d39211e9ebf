"""`haru ask`, `haru chat`: the commands that drive conversations, and what they show of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import now, say, say_json, tell, when
from haru_fsm.cli.wiring import Given, known, run, text_of
from haru_fsm.ids import new_conversation_id

if TYPE_CHECKING:
    from haru_fsm.conversation import Awaited, Step
    from haru_fsm.runs import Run
    from haru_fsm.stores import Store
    from haru_fsm.worker import Watcher

Text = Annotated[str, typer.Argument(metavar="TEXT", help="What the customer wrote; `-` reads standard input.")]
MessageId = Annotated[
    str | None,
    typer.Option("--message-id", metavar="ID", help="The same id again gives the same run, and does nothing twice."),
]
NOT_TAKEN = "Interrupted before the message was written down: nothing has happened. Ask again."


def ask(
    text: Text,
    customer: options.Customer,
    conversation: options.ToConversation = None,
    message_id: MessageId = None,
    model: options.ModelSpec = None,
    max_steps: options.MaxSteps = None,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """Take one message of a customer to its ending.

    That is an answer, or a ticket whose number is told. Shows each step once it is durable, then what the
    customer reads. With --json the steps go to standard error, and standard output is the run.

    Exit codes: 0 an ending was reached, 3 a call waits for a person's approval, 2 wrong usage or bad input, 1
    anything else.
    """
    given = Given(app, db, model, max_steps)
    message = _Message(text_of(text), customer, conversation, message_id)
    asked = run(_ask(given, message, tell if as_json else say), lambda: _interrupted(given, message))
    return show_run(asked, given, as_json)


@dataclass(slots=True)
class _Message:
    text: str
    customer_id: str
    conversation_id: str | None
    message_id: str | None
    new: str = field(default_factory=new_conversation_id)
    """The id of the conversation that it begins: made here, so that an interrupted command can say what to resume."""
    earlier: int | None = None
    """Steps of its conversation before it was asked; None: it was not."""

    @property
    def target(self) -> str | None:
        """The conversation to ask in. The engine finds the one that a `message_id` has begun before."""
        return self.conversation_id or (None if self.message_id is not None else self.new)

    @property
    def where(self) -> tuple[str]:
        """What to resume when the run is interrupted."""
        return (self.target or "--all",)


async def _ask(given: Given, message: _Message, to: Callable[[str], None]) -> Run:
    async with given.engine() as engine:
        earlier = (await known(engine.store, message.conversation_id)).steps if message.conversation_id else ()
        message.earlier = len(earlier)
        with narrated(to, earlier) as watch:
            ended = await engine.ask(
                message.text,
                customer_id=message.customer_id,
                conversation_id=message.target,
                message_id=message.message_id,
                watch=watch,
            )
        if message.message_id is not None and await _is_another(message, ended, engine.store):
            tell(
                f"The message id {message.message_id} was used for another text before: this is what that one came to, "
                "and the new text was not read. Give each message an id of its own."
            )
        return ended


def _interrupted(given: Given, message: _Message) -> str:
    """What to say to somebody who stops `haru ask`. A message that was not written down yet has to be asked again."""
    kept = given.interrupted("resume", *message.where)()
    if given.forgets or message.message_id is not None:
        return kept  # under its id it may be asked again in any case
    return kept if run(_was_taken(given, message)) else NOT_TAKEN


async def _was_taken(given: Given, message: _Message) -> bool:
    from haru_fsm.conversation import MessageHeld, MessageReceived

    if message.earlier is None or message.target is None:
        return False
    async with given.store(quiet=True) as store:
        record = await store.load(message.target)
    new = record.steps[message.earlier :] if record is not None else ()
    return any(isinstance(step.event, MessageReceived | MessageHeld) for step in new)


async def _is_another(message: _Message, ended: Run, store: Store) -> bool:
    """Whether this message's id had come with another text."""
    from haru_fsm.conversation import MessageHeld, MessageReceived
    from haru_fsm.json_safe import safe_text

    events = [step.event for step in (await known(store, ended.conversation_id)).steps]
    came = (event for event in events if isinstance(event, MessageReceived | MessageHeld))
    first = next((event.text for event in came if event.message_id == message.message_id), None)
    return first is not None and first != safe_text(message.text)


@contextmanager
def narrated(to: Callable[[str], None], earlier: Iterable[Step]) -> Iterator[Watcher]:
    """A watcher that tells a run's steps as lines; `earlier` are steps that were told before."""
    from haru_fsm.cli.narration import Narrator

    narrator = Narrator(to, earlier)
    try:
        yield narrator
    finally:
        narrator.clear()


def show_run(ended: Run, given: Given, as_json: bool) -> int:
    """What a run came to, and where to look further."""
    if as_json:
        say_json(ended.model_dump(mode="json"))
        return exits.of_run(ended)
    say(ended.answer)
    say()
    say(place(ended))
    if ended.stopped_by is not None:
        say(f"stopped by {ended.stopped_by.guard}: {ended.stopped_by.because}")
    for line in what_waits(ended.waiting, ended.conversation_id, given):
        say(line)
    if not (ended.finished or ended.waiting or given.forgets):
        tell(f"This run is not finished. Carry it on with: {given.command('resume', ended.conversation_id)}")
    say(given.where_to_look(ended.conversation_id))
    return exits.of_run(ended)


def what_waits(waiting: Iterable[Awaited], conversation_id: str, given: Given) -> Iterator[str]:
    """What a person has to decide, and what to type for it."""
    for call in waiting:
        if call.expires_at <= now():
            yield f"denied, for nobody approved it by {when(call.expires_at)}: {call.tool}({call.args!r})"
            yield f"  {given.command('resume', conversation_id)}"
            continue
        yield one_waits(call)
        if given.forgets:
            continue  # nobody can decide any more
        yield f"  {given.command('approve', conversation_id, call.call)}"
        yield f"  {given.command('deny', conversation_id, call.call, '--reason', 'TEXT')}"


def one_waits(call: Awaited) -> str:
    """The call that waits, and how long."""
    return f"waits for approval until {when(call.expires_at)}: {call.tool}({call.args!r})"


def place(ended: Run) -> str:
    """Where a run stands, in a line."""
    ticket = ended.ticket
    told = f" · ticket {ticket.ticket_id} ({ticket.category}, {ticket.urgency})" if ticket is not None else ""
    return f"conversation {ended.conversation_id} · {ended.state}{told}"


# --------------------------------------------------------------------------- chat


def chat(
    customer: options.Customer,
    conversation: options.ToConversation = None,
    model: options.ModelSpec = None,
    max_steps: options.MaxSteps = None,
    app: options.AppFolder = None,
    db: options.Database = None,
) -> int:
    """A conversation in the terminal.

    One line is one message. /quit or Ctrl-D leaves; Ctrl-C stops a run, which the next message carries on first.
    """
    given = Given(app, db, model, max_steps)
    import asyncio

    from haru_fsm.cli.chatting import Chat
    from haru_fsm.cli.logs import prepare_logs

    prepare_logs()
    with asyncio.Runner() as runner:
        return runner.run(Chat.begin(given, customer, conversation)).talk(runner)
