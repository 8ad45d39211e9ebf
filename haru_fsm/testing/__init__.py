"""The kit: what users import in their own tests, to prove their agent without paying for a model.

    assert_every_run_ends, assert_effects_once, assert_valid_history, assert_scoped    one line each in a test
    replay                                        a conversation that one of them has kept, once more
    model_replies, tool_behaviours, limits, crash_points, customer_messages           strategies for hypothesis
    Play, Finding, load_copy, FakeGemini, FakeOpenAI      their parts, and a model's server of one's own

    plays, behaviours, crashes                    what happens in a conversation, as data
    driving, judgements, judging_*, comparing, telling    the driver, what must be true, and how it is told
    personas, strategies, hunting, scoping        at random, and down to the shortest
    exhaustive (of an alphabet), kills            the other two sources of events
    fake_gemini, fake_openai, scripted_http, local_http, strict, strict_openai        the APIs and their rule books
    plugin                                        fixtures for pytest

Names are loaded when they are first used; the strategies need the extra `haru-fsm[testing]`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haru_fsm.testing.assertions import (
        assert_effects_once,
        assert_every_run_ends,
        assert_scoped,
        assert_valid_history,
        replay,
    )
    from haru_fsm.testing.behaviours import Behaviour, Does
    from haru_fsm.testing.copies import copy_app, load_copy
    from haru_fsm.testing.crashes import CrashPoint
    from haru_fsm.testing.fake_gemini import FakeGemini
    from haru_fsm.testing.fake_openai import FakeOpenAI
    from haru_fsm.testing.personas import PERSONAS
    from haru_fsm.testing.plays import Finding, Play
    from haru_fsm.testing.strategies import (
        crash_points,
        customer_messages,
        hostile_plays,
        limits,
        model_replies,
        tool_behaviours,
    )

_HOMES = {
    "PERSONAS": "personas",
    "Behaviour": "behaviours",
    "CrashPoint": "crashes",
    "Does": "behaviours",
    "FakeGemini": "fake_gemini",
    "FakeOpenAI": "fake_openai",
    "Finding": "plays",
    "Play": "plays",
    "assert_effects_once": "assertions",
    "assert_every_run_ends": "assertions",
    "assert_scoped": "assertions",
    "assert_valid_history": "assertions",
    "copy_app": "copies",
    "crash_points": "strategies",
    "customer_messages": "strategies",
    "hostile_plays": "strategies",
    "limits": "strategies",
    "load_copy": "copies",
    "model_replies": "strategies",
    "replay": "assertions",
    "tool_behaviours": "strategies",
}

__all__ = [
    "PERSONAS",
    "Behaviour",
    "CrashPoint",
    "Does",
    "FakeGemini",
    "FakeOpenAI",
    "Finding",
    "Play",
    "assert_effects_once",
    "assert_every_run_ends",
    "assert_scoped",
    "assert_valid_history",
    "copy_app",
    "crash_points",
    "customer_messages",
    "hostile_plays",
    "limits",
    "load_copy",
    "model_replies",
    "replay",
    "tool_behaviours",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'haru_fsm.testing' has no attribute {name!r}")
    return getattr(import_module(f"haru_fsm.testing.{_HOMES[name]}"), name)
