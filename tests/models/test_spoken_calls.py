"""A call in the text of an answer is no answer; JSON that is something else is one."""

import pytest

from haru_fsm.conversation import FailureReason, Usage
from haru_fsm.models.parts import Parts, meaning
from haru_fsm.models.replies import Problem, Usable
from haru_fsm.models.spoken_calls import is_spoken_call

CALL = '{"name": "get_order", "arguments": {"order_id": "HR20260725002"}}'


@pytest.mark.parametrize(
    "text",
    [
        'print(default_api.get_order(order_id="1"))',
        "```tool_code\nget_order('1')\n```",
        "확인해 보겠습니다.\n```tool_code\nget_order('1')\n```",
        CALL,
        f"```json\n{CALL}\n```",
        f"확인해 보겠습니다.\n```\n{CALL}\n```",
        f"[{CALL}, {CALL}]",
        f"<tool_call>\n{CALL}\n</tool_call>",
        "<function_call><name>get_order</name></function_call>",
        "call:default_api:get_order{order_id:<ctrl46>HR1<ctrl46>}",
        "declaration:default_api:get my order{orders:[{id:HR1}]}",
        "<start_function_call>call:get_order{order_id:<escape>HR1<escape>}<end_function_call>",
        "<tool_code>get_order('HR1')</tool_code>",
        '<tool_response>{"status": "배송완료"}</tool_response>\n배송완료입니다.',
        "<function_results><result>배송완료</result></function_results>\n배송완료입니다.",
        '확인했습니다.\n<tool_result id="1">배송완료</tool_result>',
        '<tool_call>```json\n{"name": "get_order"}\n```</tool_call>',
        '{"functionCall": {"name": "get_order", "args": {}}}',
        f'{{"tool_calls": [{CALL}]}}',
        '{"id": "1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}',
        '{"tool": "get_order", "parameters": {}}',
        "get_order(order_id='HR1')",
        " shop.get_order('HR1')\n",
        "[get_order(order_id='HR1'), get_order(order_id='HR2')]",
        '[TOOL_CALLS] [{"name": "get_order", "arguments": {}}]',
        '[TOOL_CALLS]get_order[ARGS]{"order_id": "HR1"}',
        '<|python_tag|>{"name": "get_order", "parameters": {}}',
        '<function=get_order>{"order_id": "HR1"}</function>',
        "확인하겠습니다.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_order",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_order:0",
        '<invoke name="get_order"><parameter name="order_id">HR1</parameter></invoke>',
        '<tool_call name="get_order">{}</tool_call>',
        "<|channel|>commentary to=functions.get_order <|constrain|>json<|message|>{}<|call|>",
        'Action: get_order\nAction Input: {"order_id": "HR1"}',
        'Thought: 주문을 봐야 한다.\n\nAction: get_order\nAction Input: {"order_id": "HR1"}\nObservation: 배송중',
        "**Action:** get_order[HR1]",
        '배송중입니다.\n```tool_outputs\n{"status": "배송중"}\n```',
        '확인하겠습니다.\n<call_record tool="get_order">\n<parameter name="order_id">HR1</parameter>\n</call_record>',
    ],
)
def test_a_call_in_a_text_is_a_malformed_call(text: str) -> None:
    assert is_spoken_call(text)
    found = meaning(Parts(parts=[{"text": text}]), "STOP", Usage())
    assert isinstance(found, Problem)
    assert found.reason is FailureReason.MALFORMED_CALL


@pytest.mark.parametrize(
    "text",
    [
        "배송중입니다.",
        "Action: Visit [My orders](https://shop.example/orders) and choose a parcel.",
        "Action: 취소하시려면 마이페이지로 가세요.\n다른 방법도 있습니다.",
        "{",
        "[]",
        '{"order_id": "HR20260725002", "status": "배송중"}',
        '{"name": "무선 이어폰", "price": 12900}',
        '{"name": "무선 이어폰"}',
        '{"name": "무선 이어폰", "arguments": {}, "price": 12900}',
        '```json\n{"name": "무선 이어폰", "color": "검정"}\n```',
        "쿠폰 이름(name)과 수량(arguments)을 알려주세요.",
        "무선 이어폰(색상=검정)",
        "OK (배송중)",
        "tool_outputs 폴더에 있습니다.",
        "tool_code is the name of a block.",
        "`<tool_result>` 태그와 `<tool_call id>` 태그는 이런 뜻입니다.",
        "배송 상태는 get_order(order_id)로 확인했습니다.",
        "invoke와 function은 이런 뜻입니다: <b>부르다</b>",
        "네." + " " * 80_000,
        "a_" * 40_000,
        "a." * 5000 + "(",
        "[[" * 5000,
        "[" * 500 + "]" * 500,
    ],
)
def test_other_texts_are_answers(text: str) -> None:
    assert not is_spoken_call(text)
    assert isinstance(meaning(Parts(parts=[{"text": text}]), "STOP", Usage()), Usable)
