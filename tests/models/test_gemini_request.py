"""Requests are built in the API's own form, and nothing of the history is copied or changed."""

import copy
from typing import Any

import pytest

from haru_fsm.conversation import JSON
from haru_fsm.models import Declaration, ModelRequest
from haru_fsm.models.gemini_request import build_body
from haru_fsm.models.retrying import Amendment
from haru_fsm.models.tokens import MOST_OUTPUT_TOKENS
from haru_fsm.testing.fake_gemini import call
from haru_fsm.testing.strict import check_contents, check_responses_alone

SCHEMA = {"type": "object", "properties": {"order_id": {"$ref": "#/$defs/Id"}}, "$defs": {"Id": {"type": "string"}}}
CONTENTS = (
    {"role": "user", "parts": [{"text": "주문 어디쯤 왔나요?"}]},
    {"role": "model", "parts": [{**call("get_order"), "thoughtSignature": "AQID"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "get_order", "response": {"result": 1}}}]},
)


def request(**more: Any) -> ModelRequest:
    given = {"system": "친절하게", "contents": CONTENTS, "declarations": [Declaration("get_order", "찾기", SCHEMA)]}
    return ModelRequest(**{**given, **more})


def body(
    the_request: ModelRequest | None = None,
    amendment: Amendment = Amendment(),  # noqa: B008
    name: str = "gemini-flash-latest",
    most: int | None = None,
) -> JSON:
    return build_body(the_request or request(), amendment, name=name, temperature=1.0, max_output_tokens=most)


def test_the_whole_body() -> None:
    assert body(most=1024) == {
        "contents": list(CONTENTS),
        "systemInstruction": {"parts": [{"text": "친절하게"}]},
        "tools": [
            {"functionDeclarations": [{"name": "get_order", "description": "찾기", "parametersJsonSchema": SCHEMA}]}
        ],
        "generationConfig": {"temperature": 1.0, "maxOutputTokens": 1024},
    }


def test_what_there_is_not_is_left_out() -> None:
    assert body(request(system="", declarations=[])).keys() == {"contents", "generationConfig"}
    declared = body(request(declarations=[Declaration("now", "시간")]))["tools"][0]["functionDeclarations"]
    assert declared == [{"name": "now", "description": "시간"}]


def test_tools_that_are_off_stay_declared() -> None:
    built = body(request(tools_allowed=False))
    assert built["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert built["tools"]


def test_a_hint_is_a_part_of_the_last_user_turn_and_the_history_is_untouched() -> None:
    before = copy.deepcopy(CONTENTS)
    built = body(request(contents=CONTENTS[:1]), Amendment(hint="짧게"))
    assert built["contents"] == [{"role": "user", "parts": [*CONTENTS[0]["parts"], {"text": "짧게"}]}]
    assert before == CONTENTS


def test_what_is_said_beside_a_response_is_a_turn_of_its_own() -> None:
    """Beside it, Gemini 3.6 takes it for a turn of the model and refuses the request."""
    told = {**CONTENTS[2], "parts": [*CONTENTS[2]["parts"], {"text": "(Outcome of call 1.0: done)"}]}
    later = ({"role": "model", "parts": [{"text": "네."}]}, CONTENTS[0])
    built = body(request(contents=(*CONTENTS[:2], told, *later)), Amendment(hint="짧게"))["contents"]
    assert built[2] == CONTENTS[2]
    assert built[3] == {"role": "user", "parts": [{"text": "(Outcome of call 1.0: done)"}]}
    assert built[4]["role"] == "model"
    hinted = body(amendment=Amendment(hint="짧게"))["contents"]
    assert hinted == [*CONTENTS, {"role": "user", "parts": [{"text": "짧게"}]}]
    for contents in (built, hinted):
        assert check_contents(contents) == []
        assert check_responses_alone(contents) == []


def test_a_copy_of_the_body_copies_no_history() -> None:
    built = body()
    assert copy.deepcopy(built)["contents"][1] is built["contents"][1]


@pytest.mark.parametrize(
    ("most", "cut_off", "expected"),
    [(1024, 0, 1024), (1024, 1, 4096), (1024, 2, 16384), (50_000, 1, MOST_OUTPUT_TOKENS), (100_000, 1, 100_000)],
)
def test_a_reply_that_was_cut_off_gets_more_room(most: int, cut_off: int, expected: int) -> None:
    assert body(amendment=Amendment(cut_off=cut_off), most=most)["generationConfig"]["maxOutputTokens"] == expected


@pytest.mark.parametrize(
    ("name", "thought", "config"),
    [
        ("gemini-3-flash", True, {"thinkingLevel": "LOW"}),
        ("gemini-2.5-flash", True, {"thinkingBudget": 512}),
        ("gemini-2.0-flash", False, None),
    ],
)
def test_where_there_is_no_more_room_a_thinking_model_thinks_less(
    name: str, thought: bool, config: JSON | None
) -> None:
    amendment = Amendment(cut_off=1, thought=thought)
    assert body(amendment=amendment, name=name)["generationConfig"].get("thinkingConfig") == config
