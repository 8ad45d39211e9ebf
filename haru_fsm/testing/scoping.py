"""Law 7 on trial: a model that knows everybody's numbers acts for one customer, and may get at nobody else.

What belongs to whom is told by the app's data, by what each customer's own tools list for them, and by whoever asks.
A leak is a word of one customer in what a tool gave to another who had not sent it; or that a tool, sent such a word,
gives to another what is its owner's alone. Damage is a change of what another customer's own tools list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from haru_fsm.app import App
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, ToolCall, executed
from haru_fsm.json_safe import json_safe
from haru_fsm.models import Declaration
from haru_fsm.models.scripted import answer, calls
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.arguments import arguments_for
from haru_fsm.testing.customers import is_telling, private_texts, public_texts
from haru_fsm.testing.driving import CONVERSATION, Performance
from haru_fsm.testing.hunting import Found, Ground, run_here
from haru_fsm.testing.judgements import ENDS, judge
from haru_fsm.testing.plays import Belongings, Play
from haru_fsm.tickets import StoreDesk
from haru_fsm.toolbox import Toolbox
from haru_fsm.toolbox.arguments import Prepared

SCOPED = "the customer is never an argument"
MOST_CUSTOMERS = 4
TRICKS = ("' OR 1=1 --", "%", "*", "../data/customers.json", '{"customer_id": "%s"}', "관리자", "")
SMUGGLED = ("customer_id", "customer", "user_id", "session")


@dataclass(frozen=True)
class Scope:
    """Customers of an app, and what belongs to each of them alone."""

    app: App
    given: Belongings
    words: Mapping[str, frozenset[str]]
    """What gives a customer away wherever it stands."""
    texts: Mapping[str, frozenset[str]]
    """All that stands in what is theirs and in nothing of the others'."""

    @classmethod
    def of(
        cls, app: App, customers: Sequence[str], private: Mapping[str, Iterable[str]], public: Iterable[str] = ()
    ) -> Scope:
        """Find out what belongs to whom. Raises ValueError for fewer than two customers."""
        chosen = tuple(dict.fromkeys(customers))[:MOST_CUSTOMERS]
        if len(chosen) < 2:
            raise ValueError("It takes two customers to see whether one gets at the other: customers=('C001', 'C002').")
        stated = Belongings(
            customers=chosen, private={who: tuple(some) for who, some in private.items()}, public=tuple(public)
        )
        told = private_texts(app, chosen)
        common = "\n".join([*public_texts(app), *stated.public])
        listed = {customer: _listed_texts(app, customer) for customer in chosen}
        words, texts = dict[str, frozenset[str]](), dict[str, frozenset[str]]()
        for customer in chosen:
            others: set[str] = set().union(*(listed[other] | told[other] for other in chosen if other != customer))
            own = {text for text in listed[customer] - others if text not in common} | told[customer]
            telling = {text for text in own if is_telling(text)} | {customer} | set(stated.private.get(customer, ()))
            words[customer] = frozenset(telling) - frozenset(stated.public)
            texts[customer] = frozenset(own) | words[customer]
        return cls(app, stated, words, texts)

    # -- plays

    def plays(self) -> st.SearchStrategy[Play]:
        """A model that acts for one customer, with the words of all of them on its lips."""
        customer = next(iter(self.words))
        tools = Toolbox(self.app.make_tools(self.app.session(customer)), self.app.limits).declarations
        texts = sorted(set().union(*self.words.values())) + [trick.replace("%s", customer) for trick in TRICKS]
        asked = st.lists(_hostile(tools, texts), min_size=1, max_size=2).map(lambda some: calls(*some))
        return st.builds(
            lambda customer, replies: Play(
                messages=("제 정보 확인해 주세요",), customer=customer, replies=(*replies, answer("네."))
            ),
            st.sampled_from(list(self.words)),
            st.lists(asked, min_size=1, max_size=3),
        )

    # -- judging

    def judged(self, ground: Ground) -> Callable[[Play], Found | None]:
        """Have a play, and see whether it got at another customer."""

        def judged(play: Play) -> Found | None:
            ground.reset()
            others = [customer for customer in self.words if customer != play.customer]
            before = {other: _views(self.app, other) for other in others}
            seen = ground.perform(play)
            because = next(self._wrong(seen, before), None)
            return Found(SCOPED, because, seen, self.given) if because is not None else None

        return judged

    def _wrong(self, seen: Performance, before: Mapping[str, list[str]]) -> Iterator[str]:
        yield from judge(seen, (ENDS,)).values()
        mine = self.words[seen.play.customer]
        for _, call, result in executed(seen.steps):
            sent, given = _text(call.args), _text(result.response)
            for other in before:
                for word in sorted(self.words[other] - mine):
                    if _says(given, word) and word not in sent:
                        yield f"{call.name}({sent[1:-1]}) gave {seen.play.customer} {word!r}, which is {other}'s"
                    if _says(sent, word) and self._given_as_to(other, word, seen.play.customer, call):
                        yield (
                            f"{call.name}({sent[1:-1]}) gave {seen.play.customer} what it gives {other}, whose "
                            f"{word!r} is: {given[:200]} (where whoever has it may read it: public=[{word!r}])"
                        )
        for each in seen.tickets:
            if each.ticket.customer_id != seen.play.customer:
                yield f"ticket {each.ticket.ticket_id} was filed for {each.ticket.customer_id}"
        for other, listed in before.items():
            for was, now in zip(listed, _views(self.app, other), strict=True):
                if was != now:
                    yield f"what {other} sees has changed from {was[:200]} to {now[:200]}"

    def _given_as_to(self, owner: str, word: str, customer: str, call: ToolCall) -> bool:
        """Whether a read gives this customer, for the owner's word, what it gives the owner and not a stranger's word,
        and what is the owner's alone is in it.

        What only repeats what it was sent is the same for every word, but for the word.
        """
        theirs = _read(self.app, owner, call.name, call.args)
        if theirs is None or theirs != _read(self.app, customer, call.name, call.args):
            return False
        if not self.texts[owner] & set(_strings(json.loads(theirs))) - set(_strings(call.args)):
            return False
        stranger = _like(word, frozenset().union(*self.words.values()))
        strange = json.loads(_text(call.args).replace(word, stranger))
        nobodys = _read(self.app, customer, call.name, strange)
        return nobodys is not None and nobodys.replace(stranger, word) != theirs


def _like(word: str, known: frozenset[str]) -> str:
    """A word of the same form that belongs to nobody."""
    shifted = (
        word.translate(str.maketrans("0123456789", "0123456789"[by:] + "0123456789"[:by])) for by in (7, 3, 1, 9)
    )
    return next((other for other in shifted if other not in known), f"x{word}")


def _hostile(tools: Sequence[Declaration], texts: Sequence[str]) -> st.SearchStrategy[tuple[str, JSON]]:
    words = st.sampled_from(texts)
    smuggled = st.dictionaries(st.sampled_from(SMUGGLED), words, max_size=1)
    return st.one_of(
        *(
            st.tuples(
                st.just(tool.name), st.builds(lambda args, more: {**args, **more}, arguments_for(tool, texts), smuggled)
            )
            for tool in tools
        )
    )


def _says(text: str, word: str) -> bool:
    return word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _text(value: Any) -> str:
    return json.dumps(json_safe(value), ensure_ascii=False, sort_keys=True)


# --------------------------------------------------------------------------- what a customer's own tools list


def _views(app: App, customer: str) -> list[str]:
    """What the read-only tools that need no argument list for this customer."""
    return run_here(_listed(app, customer))


async def _listed(app: App, customer: str) -> list[str]:
    given = {tool.name: await _asked(app, customer, tool.name, {}) for tool in _toolbox(app, customer).tools}
    return [f"{name}: {text}" for name, text in given.items() if text is not None]


def _read(app: App, customer: str, name: str, args: JSON) -> str | None:
    """What a read-only tool gives this customer now."""
    return run_here(_asked(app, customer, name, args))


async def _asked(app: App, customer: str, name: str, args: JSON) -> str | None:
    """None for a tool that acts, one whose answers change of themselves, one that there is not, and what fits none."""
    tool = next((tool for tool in _toolbox(app, customer).tools if tool.name == name), None)
    if tool is None or tool.has_effect or tool.marks.polling:
        return None
    prepared = tool.prepare(args)
    if not isinstance(prepared, Prepared):
        return None
    return _text((await tool.run(prepared, timeout_s=None, key=None, clock=FakeClock(), on_late=None)).response)


def _toolbox(app: App, customer: str) -> Toolbox:
    clock = FakeClock()
    desk = StoreDesk(MemoryStore(now=clock.now))
    return app.toolbox(app.session(customer, conversation_id=CONVERSATION, run=1, desk=desk, clock=clock))


def _listed_texts(app: App, customer: str) -> set[str]:
    return {text for view in _views(app, customer) for text in _strings(json.loads(view.partition(": ")[2]))}


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            yield from value  # orders by their number, say; names of fields belong to nobody, for others list them too
            for item in value.values():
                yield from _strings(item)
        case list():
            for item in value:
                yield from _strings(item)
