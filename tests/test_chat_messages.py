"""Histories of loops that were not written for Gemini: calls stay calls, results are nobody's words."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haru_fsm.adoption import repaired
from haru_fsm.conversation import JSON
from haru_fsm.errors import SettingsError
from haru_fsm.models.gemini_signatures import UNSIGNED
from haru_fsm.testing.strict import check_contents

NEXT = {"role": "user", "parts": [{"text": "다음 질문"}]}


def _call(order: str, id_: str, **more: str) -> JSON:
    return {"functionCall": {"name": "get_order", "id": id_, "args": {"order_id": order}}, **more}


def _answer(id_: str, **said: Any) -> JSON:
    return {"functionResponse": {"name": "get_order", "id": id_, "response": said}}


WHOLE = (
    {"role": "user", "parts": [{"text": "두 주문 어디예요?"}]},
    {
        "role": "model",
        "parts": [{"text": "볼게요."}, _call("HR1", "c1", thoughtSignature=UNSIGNED), _call("HR2", "c2")],
    },
    {"role": "user", "parts": [_answer("c1", status="배송중"), _answer("c2", result="없음")]},
    {"role": "model", "parts": [{"text": "하나는 배송중입니다."}]},
)

OPENAI: list[JSON] = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": "두 주문 어디예요?"},
    {
        "role": "assistant",
        "content": "볼게요.",
        "tool_calls": [
            {
                "id": id_,
                "type": "function",
                "function": {"name": "get_order", "arguments": f'{{"order_id": "{order}"}}'},
            }
            for id_, order in (("c1", "HR1"), ("c2", "HR2"))
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"status": "배송중"}'},
    {"role": "tool", "tool_call_id": "c2", "content": "없음"},
    {"role": "assistant", "content": [{"type": "text", "text": "하나는 배송중입니다."}]},
]
ANTHROPIC: list[JSON] = [
    {"role": "user", "content": "두 주문 어디예요?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "...", "signature": "x"},
            {"type": "text", "text": "볼게요."},
            {"type": "tool_use", "id": "c1", "name": "get_order", "input": {"order_id": "HR1"}},
            {"type": "tool_use", "id": "c2", "name": "get_order", "input": {"order_id": "HR2"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "없음"}]},
            {"type": "tool_result", "tool_use_id": "c1", "content": '{"status": "배송중"}'},
        ],
    },
    {"role": "assistant", "content": "하나는 배송중입니다."},
]
LANGCHAIN: list[JSON] = [
    {"type": "system", "content": "You are helpful."},
    {"type": "human", "content": "두 주문 어디예요?"},
    {
        "type": "ai",
        "content": "볼게요.",
        "tool_calls": [
            {"name": "get_order", "args": {"order_id": "HR1"}, "id": "c1", "type": "tool_call"},
            {"name": "get_order", "args": {"order_id": "HR2"}, "id": "c2", "type": "tool_call"},
        ],
    },
    {"type": "tool", "tool_call_id": "c1", "name": "get_order", "content": '{"status": "배송중"}'},
    {"type": "tool", "tool_call_id": "c2", "name": "get_order", "content": "없음"},
    {"type": "ai", "content": "하나는 배송중입니다.", "tool_calls": []},
]
RESPONSES: list[JSON] = [
    {"role": "developer", "content": "You are helpful."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "두 주문 어디예요?"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "볼게요.", "annotations": []}],
    },
    *(
        {
            "type": "function_call",
            "id": f"fc_{id_}",
            "call_id": id_,
            "name": "get_order",
            "arguments": f'{{"order_id": "{order}"}}',
        }
        for id_, order in (("c1", "HR1"), ("c2", "HR2"))
    ),
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "없음"}]},
    {"type": "function_call_output", "call_id": "c1", "output": '{"status": "배송중"}'},
    {"role": "assistant", "content": "하나는 배송중입니다."},
]
PYDANTIC_AI: list[JSON] = [
    {
        "kind": "request",
        "parts": [
            {"part_kind": "system-prompt", "content": "You are helpful."},
            {"part_kind": "user-prompt", "content": ["두 주문 어디예요?"], "timestamp": "2026-07-25T00:00:00Z"},
        ],
    },
    {
        "kind": "response",
        "parts": [
            {"part_kind": "thinking", "content": "...", "signature": None},
            {"part_kind": "text", "content": "볼게요."},
            {"part_kind": "tool-call", "tool_name": "get_order", "args": '{"order_id": "HR1"}', "tool_call_id": "c1"},
            {"part_kind": "tool-call", "tool_name": "get_order", "args": {"order_id": "HR2"}, "tool_call_id": "c2"},
        ],
    },
    {
        "kind": "request",
        "parts": [
            {
                "part_kind": "tool-return",
                "tool_name": "get_order",
                "content": {"status": "배송중"},
                "tool_call_id": "c1",
            },
            {"part_kind": "tool-return", "tool_name": "get_order", "content": "없음", "tool_call_id": "c2"},
        ],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": "하나는 배송중입니다."}]},
]
BEDROCK: list[JSON] = [
    {"role": "user", "content": [{"text": "두 주문 어디예요?"}]},
    {
        "role": "assistant",
        "content": [
            {"text": "볼게요."},
            *(
                {"toolUse": {"toolUseId": id_, "name": "get_order", "input": {"order_id": order}}}
                for id_, order in (("c1", "HR1"), ("c2", "HR2"))
            ),
        ],
    },
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "c1", "content": [{"json": {"status": "배송중"}}], "status": "success"}},
            {"toolResult": {"toolUseId": "c2", "content": [{"text": "없음"}]}},
        ],
    },
    {"role": "assistant", "content": [{"text": "하나는 배송중입니다."}]},
]
VERCEL: list[JSON] = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": [{"type": "text", "text": "두 주문 어디예요?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "볼게요."},
            {"type": "tool-call", "toolCallId": "c1", "toolName": "get_order", "input": {"order_id": "HR1"}},
            {"type": "tool-call", "toolCallId": "c2", "toolName": "get_order", "args": {"order_id": "HR2"}},
        ],
    },
    {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": "c1", "toolName": "get_order", "result": {"status": "배송중"}},
            {
                "type": "tool-result",
                "toolCallId": "c2",
                "toolName": "get_order",
                "output": {"type": "text", "value": "없음"},
            },
        ],
    },
    {"role": "assistant", "content": "하나는 배송중입니다."},
]
VERCEL_SHOWN: list[JSON] = [
    {"id": "1", "role": "user", "parts": [{"type": "text", "text": "두 주문 어디예요?"}]},
    {
        "id": "2",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "...", "state": "done"},
            {"type": "text", "text": "볼게요.", "state": "done"},
            {
                "type": "tool-get_order",
                "toolCallId": "c1",
                "state": "output-available",
                "input": {"order_id": "HR1"},
                "output": {"status": "배송중"},
            },
            {"type": "step-start"},
            {
                "type": "tool-invocation",
                "toolInvocation": {
                    "toolCallId": "c2",
                    "toolName": "get_order",
                    "state": "result",
                    "args": {"order_id": "HR2"},
                    "result": "없음",
                },
            },
            {
                "type": "dynamic-tool",
                "toolName": "get_order",
                "toolCallId": "c3",
                "state": "output-error",
                "input": {"order_id": "HR3"},
                "errorText": "고장",
            },
            {"type": "text", "text": "하나는 배송중입니다."},
        ],
    },
]
LANGCHAIN_ANTHROPIC: list[JSON] = [
    *LANGCHAIN[:2],
    {
        "type": "AIMessageChunk",
        "content": [
            {"type": "text", "text": "볼게요."},
            {"type": "tool_use", "id": "c1", "name": "get_order", "input": {}, "partial_json": '{"order_id": "HR1"}'},
            {"type": "tool_use", "id": "c2", "name": "get_order", "input": {"order_id": "HR2"}},
        ],
        "tool_calls": [
            {"name": "get_order", "args": {"order_id": order}, "id": id_, "type": "tool_call"}
            for id_, order in (("c1", "HR1"), ("c2", "HR2"))
        ],
    },
    *LANGCHAIN[-3:],
]
HISTORIES = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "langchain": LANGCHAIN,
    "langchain, as messages_to_dict": [{"type": each["type"], "data": each} for each in LANGCHAIN],
    "langchain, as dumpd": [{"lc": 1, "type": "constructor", "id": ["X"], "kwargs": each} for each in LANGCHAIN],
    "langchain, by the names of classes": [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": each}
        for name, each in zip(
            ["SystemMessage", "HumanMessage", "AIMessage", "ToolMessage", "ToolMessage", "AIMessageChunk"],
            ({key: value for key, value in each.items() if key != "type"} for each in LANGCHAIN),
            strict=True,
        )
    ],
    "langchain, with calls in the content too": LANGCHAIN_ANTHROPIC,
    "responses": RESPONSES,
    "responses, as objects": [{"role": None, "content": None, **each} for each in RESPONSES],
    "pydantic-ai": PYDANTIC_AI,
    "bedrock": BEDROCK,
    "vercel": VERCEL,
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=list(HISTORIES))
def test_calls_stay_calls_and_results_stay_results(history: list[JSON]) -> None:
    mended, _ = repaired(history)
    assert mended == WHOLE
    assert check_contents([*mended, NEXT]) == []


def test_what_a_user_interface_was_shown_is_a_history_too() -> None:
    mended, repairs = repaired(VERCEL_SHOWN)
    assert mended == (
        WHOLE[0],
        {"role": "model", "parts": [{"text": "볼게요."}, _call("HR1", "c1", thoughtSignature=UNSIGNED)]},
        {"role": "user", "parts": [_answer("c1", status="배송중")]},
        {"role": "model", "parts": [_call("HR2", "c2", thoughtSignature=UNSIGNED)]},
        {"role": "user", "parts": [_answer("c2", result="없음")]},
        {"role": "model", "parts": [_call("HR3", "c3", thoughtSignature=UNSIGNED)]},
        {"role": "user", "parts": [_answer("c3", error="고장")]},
        WHOLE[-1],
    )
    assert check_contents([*mended, NEXT]) == []
    assert "a part of the type 'reasoning' was left out" in repairs


ORDERS = ["HR1", "HR2"]
LISTS = {
    "pydantic-ai": [
        {
            "kind": "request",
            "parts": [{"part_kind": "tool-return", "tool_name": "a", "tool_call_id": "c1", "content": ORDERS}],
        }
    ],
    "bedrock": [{"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"json": ORDERS}]}}]}],
    "vercel": [
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"type": "json", "value": ORDERS}}],
        }
    ],
    "vercel 4": [{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "result": ORDERS}]}],
}


@pytest.mark.parametrize("told", LISTS.values(), ids=list(LISTS))
def test_a_list_that_a_tool_has_given_is_no_list_of_texts_to_be_run_together(told: list[JSON]) -> None:
    mended, _ = repaired([*OPENAI[:3], *told])
    assert mended[-1]["parts"][0] == _answer("c1", result=ORDERS)


def test_what_a_tool_has_given_in_pieces_of_text_is_one_text() -> None:
    output = {"type": "content", "value": [{"type": "text", "text": "배송"}, {"type": "text", "text": "중"}]}
    told = {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "output": output}]}
    mended, _ = repaired([*OPENAI[:3], told])
    assert mended[-1]["parts"][0] == _answer("c1", result="배송중")


def test_what_a_tool_has_given_may_have_a_type_of_its_own() -> None:
    given = {"type": "document", "no": 7}
    result = {"toolResult": {"toolUseId": "c1", "content": [{"json": given}]}}
    mended, _ = repaired([*OPENAI[:3], {"role": "user", "content": [result]}])
    assert mended[-1]["parts"][0] == _answer("c1", **given)


def test_thoughts_are_nobodys_words_though_they_have_a_content() -> None:
    thought = {"type": "reasoning", "content": "The customer is rude."}
    mended, repairs = repaired([OPENAI[1], thought, OPENAI[-1]])
    assert mended == (WHOLE[0], WHOLE[-1])
    assert "an item of the type 'reasoning' was left out" in repairs


def test_messages_may_hold_what_nothing_can_copy() -> None:
    @dataclasses.dataclass
    class Said:
        content: str
        lock: Any
        role: str = "user"

    mended, _ = repaired([Said("어디예요?", threading.Lock())])
    assert mended == ({"role": "user", "parts": [{"text": "어디예요?"}]},)


def test_messages_may_be_dataclasses() -> None:
    @dataclasses.dataclass
    class Said:
        content: str
        part_kind: str = "user-prompt"

    @dataclasses.dataclass
    class Request:
        parts: list[Said]
        kind: str = "request"

    mended, _ = repaired([Request([Said("어디예요?")])])
    assert mended == ({"role": "user", "parts": [{"text": "어디예요?"}]},)


def test_a_part_of_what_no_request_may_hold_is_left_out_and_said() -> None:
    """The API refuses the request for it, and every later one: such a conversation would never be answered again."""
    mended, repairs = repaired([{"role": "user", "parts": [{"text": "이거요"}, {"cachePoint": {"type": "default"}}]}])
    assert mended == ({"role": "user", "parts": [{"text": "이거요"}]},)
    assert repairs == ("a part of 'cachePoint' was left out",)


def test_what_pydantic_ai_asked_to_try_again_is_a_result_or_a_word_of_the_user() -> None:
    retry = {"part_kind": "retry-prompt", "content": "No such order.", "tool_name": "get_order", "tool_call_id": "c1"}
    asked = [{"kind": "request", "parts": [retry]}, {"kind": "request", "parts": [{**retry, "tool_name": None}]}]
    mended, _ = repaired([*PYDANTIC_AI[:2], *asked])
    assert mended[2]["parts"][0] == _answer("c1", error="No such order.")
    assert mended[-1] == {"role": "user", "parts": [{"text": "No such order."}]}


def test_items_of_the_responses_api_that_nobody_else_can_read_are_left_out_and_said() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    mended, repairs = repaired([*RESPONSES[:4], search, *RESPONSES[4:]])
    assert mended == WHOLE
    assert {"an item of the type 'reasoning' was left out", "an item of the type 'web_search_call' was left out"} <= {
        *repairs
    }


def test_calls_one_behind_the_other_stay_apart_and_one_without_a_message_is_the_models() -> None:
    user, *_, first, second, later, earlier, answer = RESPONSES[1:]
    mended, _ = repaired([user, first, earlier, second, later, answer])
    assert [turn["role"] for turn in mended] == ["user", "model", "user", "model", "user", "model"]
    assert mended[1]["parts"] == [_call("HR1", "c1", thoughtSignature=UNSIGNED)]
    assert mended[4]["parts"] == [_answer("c2", result="없음")]
    assert check_contents([*mended, NEXT]) == []


def test_a_call_of_a_custom_tool_has_a_text_for_all_its_arguments() -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "note", "input": "안녕"}
    mended, _ = repaired([RESPONSES[1], call, {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}])
    assert mended[1]["parts"][0]["functionCall"] == {"name": "note", "id": "c1", "args": {"input": "안녕"}}
    assert mended[2]["parts"][0]["functionResponse"] == {"name": "note", "id": "c1", "response": {"result": "ok"}}


def test_what_no_content_can_hold_is_said() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://shop.example/a.png"}}
    mended, repairs = repaired(
        [*OPENAI[:1], {"role": "user", "content": [picture, {"type": "text", "text": "이거요"}]}]
    )
    assert mended == ({"role": "user", "parts": [{"text": "이거요"}]},)
    assert set(repairs) == {
        "instructions at the beginning were left out: the app has its own",
        "a part of the type 'image_url' was left out",
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1.10", {"result": "1.10"}),
        ("1e5", {"result": "1e5"}),
        ("null", {"result": "null"}),
        ('"배송중"', {"result": "배송중"}),
        ("[1.5]", {"result": [1.5]}),
        (["배송", "중"], {"result": "배송중"}),
        ([{"type": "text", "text": "배송중"}, {"type": "image", "source": {}}], {"result": "배송중"}),
        ([{"order": 1}, {"order": 2}], {"result": [{"order": 1}, {"order": 2}]}),
        ([], {"result": ""}),
        (None, {"result": None}),
    ],
)
def test_a_result_says_what_it_said(content: Any, said: JSON) -> None:
    history = [*OPENAI[:3], {"role": "tool", "tool_call_id": "c1", "content": content}]
    contents, _ = repaired(history)
    assert contents[-1]["parts"][0]["functionResponse"]["response"] == said


def test_a_candidate_of_a_reply_is_the_content_in_it() -> None:
    said = {"role": "model", "parts": [{"text": "배송중입니다."}]}
    contents, _ = repaired(["어디예요?", {"content": said, "finishReason": "STOP", "index": 0}])
    assert contents[-1] == said


def test_instructions_in_the_middle_are_kept_for_loops_put_results_there() -> None:
    mended, _ = repaired([{"role": "user", "content": "a"}, {"role": "system", "content": "result: 3"}])
    assert [turn["parts"] for turn in mended] == [[{"text": "a"}], [{"text": "result: 3"}]]


def test_the_older_function_call() -> None:
    call = {"name": "get_order", "arguments": '{"order_id": "HR1"}'}
    mended, _ = repaired(
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "get_order", "content": "3"},
        ]
    )
    assert mended[1]["parts"][0]["functionCall"] == {"name": "get_order", "args": {"order_id": "HR1"}}
    assert mended[2]["parts"] == [{"functionResponse": {"name": "get_order", "response": {"result": "3"}}}]


odd = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["", "text", "tool_use", "{}", "[1", "c1"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "text", "content", "tool_calls", "function_call", "function", "arguments", "args", "name", "id",
                 "tool_call_id", "tool_use_id", "input"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=10,
)  # fmt: skip
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "function", "system", "human", "ai", None])},
    optional={"content": odd, "tool_calls": odd, "function_call": odd, "tool_call_id": odd, "type": odd, "name": odd},
)
items = st.fixed_dictionaries(
    {"type": st.sampled_from(["function_call", "function_call_output", "custom_tool_call", "reasoning", "else"])},
    optional={"call_id": odd, "name": odd, "arguments": odd, "output": odd, "input": odd, "id": odd},
)


kinds = st.sampled_from(["text", "user-prompt", "tool-call", "tool-return", "retry-prompt", "thinking"])
parts = st.fixed_dictionaries(
    {"part_kind": kinds},
    optional={"content": odd, "args": odd, "tool_name": odd, "tool_call_id": odd},
)
framed = st.fixed_dictionaries(
    {"kind": st.sampled_from(["request", "response"]), "parts": st.lists(parts, max_size=3)},
    optional={"data": odd, "kwargs": odd, "lc": odd},
)


@given(st.lists(messages | items | framed, max_size=6))
@settings(max_examples=400, deadline=None)
def test_whatever_messages_hold_becomes_valid(history: list[JSON]) -> None:
    try:
        mended, _ = repaired(history)
    except SettingsError:
        return
    assert check_contents([*mended, NEXT]) == []
    assert repaired(mended) == (mended, ())
