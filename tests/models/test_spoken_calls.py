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
        '{"functionCall": {"name": "get_order", "args": {}}}',
        f'{{"tool_calls": [{CALL}]}}',
        '{"id": "1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}',
        '{"tool": "get_order", "parameters": {}}',
    ],
)
def test_a_call_in_a_text_is_a_malformed_call(text):
    assert is_spoken_call(text)
    found = meaning(Parts(parts=[{"text": text}]), "STOP", Usage())
    assert isinstance(found, Problem)
    assert found.reason is FailureReason.MALFORMED_CALL


@pytest.mark.parametrize(
    "text",
    [
        "배송중입니다.",
        "{",
        "[]",
        '{"order_id": "HR20260725002", "status": "배송중"}',
        '{"name": "무선 이어폰", "price": 12900}',
        '{"name": "무선 이어폰"}',
        '{"name": "무선 이어폰", "arguments": {}, "price": 12900}',
        '```json\n{"name": "무선 이어폰", "color": "검정"}\n```',
        "쿠폰 이름(name)과 수량(arguments)을 알려주세요.",
        "[[" * 5000,
        "[" * 500 + "]" * 500,
    ],
)
def test_other_texts_are_answers(text):
    assert not is_spoken_call(text)
    assert isinstance(meaning(Parts(parts=[{"text": text}]), "STOP", Usage()), Usable)
