"""Personas: how models misbehave. Each is a function from the tools there are to a strategy of replies.

They are made to be put together: `model_replies()` lets several speak in one conversation, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from haru_fsm.conversation import JSON, FailureReason, Incident, ModelAnswered, ModelFailed, ToolsRequested, Usage
from haru_fsm.models import Declaration
from haru_fsm.models.scripted import answer, calls
from haru_fsm.testing.arguments import arguments_for, broken_arguments, words
from haru_fsm.testing.judging_ending import TICKET_CLAIMS
from haru_fsm.testing.plays import Reply

Replies = st.SearchStrategy[list[Reply]]
Persona = Callable[[Sequence[Declaration]], Replies]

THOUGHTS = ("확인해 보겠습니다.", "주문 내역을 다시 확인해 보겠습니다.", "주문 내역을 한 번 더 확인해 볼게요.", "")
PHANTOMS = ("get_everything", "default_api.refund", "run_sql", "조회", "look ", "finish")
"""Names of tools that do not exist. A call without any name never comes so far: reading a reply refuses it."""
SIGNATURE = "c2lnbmF0dXJl"
"""A thought signature, base64."""

usages = st.builds(Usage, prompt=st.integers(0, 900), answer=st.integers(0, 90), cost_usd=st.none() | st.just(0.02))


def _wish(tools: Sequence[Declaration]) -> st.SearchStrategy[tuple[str, JSON]]:
    """A call that fits its declaration; of a tool that does not exist where there are none."""
    if not tools:
        return st.tuples(st.sampled_from(PHANTOMS), st.just({}))
    return st.one_of(*(st.tuples(st.just(tool.name), arguments_for(tool)) for tool in tools))


def _asks(*wanted: tuple[str, JSON], text: str = "", **facts: Any) -> ToolsRequested:
    return calls(*wanted, text=text, **facts)


def looper(tools: Sequence[Declaration]) -> Replies:
    """The same call, again and again."""
    return st.builds(lambda wish, times: [_asks(wish)] * times, _wish(tools), st.integers(1, 9))


def paraphraser(tools: Sequence[Declaration]) -> Replies:
    """The same call with other words beside it, and keys in another order."""
    thoughts = st.lists(st.sampled_from(THOUGHTS), min_size=2, max_size=6)
    return st.tuples(_wish(tools), thoughts).map(
        lambda drawn: [
            _asks((drawn[0][0], dict(reversed(drawn[0][1].items())) if number % 2 else drawn[0][1]), text=thought)
            for number, thought in enumerate(drawn[1])
        ]
    )


def oscillator(tools: Sequence[Declaration]) -> Replies:
    """Two calls in turn."""
    return st.tuples(_wish(tools), _wish(tools), st.integers(1, 5)).map(
        lambda drawn: [_asks(drawn[0]), _asks(drawn[1])] * drawn[2]
    )


def drifter(tools: Sequence[Declaration]) -> Replies:
    """Another call each time."""
    asked = st.builds(lambda wish, usage: _asks(wish, usage=usage), _wish(tools), usages)
    return st.lists(asked, min_size=1, max_size=9)


def phantom(tools: Sequence[Declaration]) -> Replies:
    """Tools that do not exist."""
    names = st.sampled_from(PHANTOMS) | st.text(min_size=1, max_size=8)
    return st.lists(names.map(lambda name: _asks((name, {}))), min_size=1, max_size=4)


def broken_json(tools: Sequence[Declaration]) -> Replies:
    """Arguments that are missing, wrong, too many, or no object at all."""
    if not tools:
        return phantom(tools)
    wrong = st.one_of(*(st.tuples(st.just(tool.name), broken_arguments(tool)) for tool in tools)).map(_asks)
    unreadable = {0: "the arguments were a list, not an object"}
    # As many alternatives as there are wrong ones: hypothesis gives each of them the same chance.
    unread = st.one_of(*(st.just(_asks((tool.name, {}), unusable=unreadable)) for tool in tools))
    return st.lists(wrong | unread, min_size=1, max_size=4)


def forgetful(tools: Sequence[Declaration]) -> Replies:
    """Thought signatures on some parts and not on others, thoughts, ids: what has to come back to the letter."""
    marks = st.sampled_from(({}, {"thoughtSignature": SIGNATURE}))
    ids = st.sampled_from(({}, {"id": "a1"}, {"id": "b2"}))
    asked = st.lists(st.tuples(_wish(tools), marks, ids), min_size=1, max_size=3)

    def content(asked: list[tuple[tuple[str, JSON], JSON, JSON]], thinks: bool) -> Reply:
        parts: list[JSON] = [{"text": "생각 중", "thought": True}] if thinks else []
        for (name, args), mark, identity in asked:
            parts.append({"functionCall": {"name": name, "args": args, **identity}, **mark})
        return ToolsRequested(content={"role": "model", "parts": parts})

    return st.lists(st.builds(content, asked, st.booleans()), min_size=1, max_size=3)


def flood(tools: Sequence[Declaration]) -> Replies:
    """Many calls in one reply."""
    return st.lists(_wish(tools), min_size=2, max_size=12).map(lambda wishes: [_asks(*wishes)])


def silent(tools: Sequence[Declaration]) -> Replies:
    """Nothing: no part, no text, only a thought; or a failure after several attempts."""
    parts = st.sampled_from([[], [{"text": ""}], [{"text": "흠", "thought": True}]])
    empty = parts.map(lambda some: ModelAnswered(content={"role": "model", "parts": some}))
    return st.lists(empty | failures, min_size=1, max_size=2)


failures: st.SearchStrategy[Reply] = st.builds(
    ModelFailed,
    reason=st.sampled_from(FailureReason),
    requests=st.integers(1, 4),
    usage=usages,
    incidents=st.just((Incident(reason="server", http_status=503),)),
)


def refuser(tools: Sequence[Declaration]) -> Replies:
    """Does not want to, politely."""
    texts = st.sampled_from(("죄송하지만 도와드릴 수 없습니다.", "I can't help with that."))
    return texts.map(lambda text: [answer(text)])


def claimant(tools: Sequence[Declaration]) -> Replies:
    """Claims a ticket that nobody has opened."""
    numbers = st.integers(0, 10**10 - 1).map("HT-{:010d}".format)
    words = st.sampled_from(("티켓 {}을 접수했습니다.", "접수 번호는 {}입니다."))
    numbered = st.builds(lambda said, number: said.format(number), words, numbers)
    return (st.sampled_from(TICKET_CLAIMS) | numbered).map(lambda text: [answer(text)])


def worker(tools: Sequence[Declaration]) -> Replies:
    """Does its work: a few calls that fit, then an answer."""
    asked = st.lists(st.lists(_wish(tools), min_size=1, max_size=2), max_size=3)
    return st.builds(lambda some, text: [*(_asks(*wishes) for wishes in some), answer(text or "네.")], asked, words)


PERSONAS: dict[str, Persona] = {
    persona.__name__: persona
    for persona in (
        worker,
        looper,
        paraphraser,
        oscillator,
        drifter,
        phantom,
        broken_json,
        forgetful,
        flood,
        silent,
        refuser,
        claimant,
    )
}
