"""The strategies draw what they say, and the tools they draw for accept it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from haru_fsm import Limits
from haru_fsm.conversation import ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.testing import (
    PERSONAS,
    CrashPoint,
    Does,
    crash_points,
    customer_messages,
    limits,
    model_replies,
    tool_behaviours,
)
from haru_fsm.testing.arguments import arguments_for
from haru_fsm.testing.plays import Finding, Play, Reply, written
from haru_fsm.testing.strategies import declarations, hostile_plays
from haru_fsm.toolbox import Prepared, Toolbox
from tests.engine.shopless import Tools
from tests.shop.opening import DATA, a_session, a_shop
from tests.testing.broken import small_app
from tools import make_tools

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=400)
SHOP = make_tools(a_session("C003", a_shop(DATA)))


@given(st.data())
@QUICK
def test_arguments_that_fit_are_accepted(data: st.DataObject) -> None:
    box = Toolbox(SHOP, Limits())
    declared = data.draw(st.sampled_from(declarations(SHOP)))
    tool = box.find(declared.name)
    assert tool is not None
    assert isinstance(tool.prepare(data.draw(arguments_for(declared))), Prepared)


def drawn(persona: str, holds: Callable[[tuple[Reply, ...]], bool]) -> bool:
    """Whether this persona can say something of the kind."""
    try:
        find(model_replies(SHOP, personas=[persona], most=1), holds, settings=MANY)
    except NoSuchExample:
        return False
    return True


def asked(replies: Iterable[Reply]) -> list[tuple[str, str]]:
    return [
        (call.name, str(call.args)) for reply in replies if isinstance(reply, ToolsRequested) for call in reply.calls
    ]


TRAITS = {
    "worker": lambda replies: len(replies) > 1 and isinstance(replies[-1], ModelAnswered),
    "looper": lambda replies: len(replies) > 2 and len(set(asked(replies))) == 1,
    "paraphraser": lambda replies: (
        len({reply.text for reply in replies}) > 1 and len({n for n, _ in asked(replies)}) == 1
    ),
    "oscillator": lambda replies: (
        len(replies) > 2 and len(set(asked(replies))) == 2 and asked(replies)[0] == asked(replies)[2]
    ),
    "drifter": lambda replies: len(set(asked(replies))) > 2,
    "phantom": lambda replies: not {name for name, _ in asked(replies)} & set(SHOP),
    "broken_json": lambda replies: any(reply.unusable for reply in replies),
    "forgetful": lambda replies: "thoughtSignature" in str(replies[0].content),
    "flood": lambda replies: len(asked(replies)) > 6,
    "silent": lambda replies: isinstance(replies[0], ModelFailed) or not replies[0].text,
    "refuser": lambda replies: isinstance(replies[0], ModelAnswered),
    "claimant": lambda replies: "HT-" in replies[0].text,
}


def test_every_persona_has_a_trait() -> None:
    assert TRAITS.keys() == PERSONAS.keys()


@pytest.mark.parametrize("persona", PERSONAS)
def test_a_persona_is_what_its_name_says(persona: str) -> None:
    assert drawn(persona, TRAITS[persona])


def test_personas_speak_one_after_the_other() -> None:
    both = find(
        model_replies(SHOP, personas=["looper", "claimant"]),
        lambda replies: isinstance(replies[0], ToolsRequested) and isinstance(replies[-1], ModelAnswered),
        settings=MANY,
    )
    looped, claimed = both[0], both[-1]
    assert isinstance(looped, ToolsRequested)
    assert looped.calls, "the looper began"
    assert isinstance(claimed, ModelAnswered)
    assert claimed.text, "and the claimant had the last word"


def test_faults_follow_from_what_a_tool_is() -> None:
    tools = Tools().make(None)

    def can(name: str, does: Does) -> bool:
        wanted = lambda some: any(each.does is does for each in some.get(name, ()))  # noqa: E731
        try:
            find(tool_behaviours(tools), wanted, settings=settings(QUICK, max_examples=300))
        except NoSuchExample:
            return False
        return True

    assert can("pay", Does.LATE)
    assert can("look", Does.HANGS)
    assert not can("look", Does.REFUSES), "what only reads has nothing to leave undone"


@given(customer_messages(), limits(), crash_points())
@QUICK
def test_the_rest_is_what_the_engine_takes(
    messages: tuple[str, ...], chosen: Limits, crashes: tuple[CrashPoint, ...]
) -> None:
    assert all(message.strip() for message in messages)
    assert isinstance(chosen, Limits)
    assert len(crashes) <= 3


@given(hostile_plays(small_app(), customers=("C1",), crashes=True, limited=True))
@QUICK
def test_a_play_survives_its_file(tmp_path_factory: pytest.TempPathFactory, play: Play) -> None:
    finding = Finding(promise="every run ends", because="티켓", play=play)
    file = finding.save(tmp_path_factory.mktemp("findings"))
    assert written(Finding.load(file)) == written(finding)
