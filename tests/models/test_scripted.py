"""ScriptedModel: what may stand in a script."""

from __future__ import annotations

import re
from typing import Any

import pytest

from haru_fsm.conversation import ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.errors import AppError
from haru_fsm.models import ModelRequest
from haru_fsm.models.scripted import ScriptedModel

REQUEST = ModelRequest("s", [{"role": "user", "parts": [{"text": "?"}]}], [])


async def test_its_lines_are_played_in_order_and_then_it_fails() -> None:
    model = ScriptedModel([[("look", {"a": 1}), ("look", {"a": 2})], "done"])
    wanted, said, over = [await model.respond(REQUEST) for _ in range(3)]
    assert isinstance(wanted, ToolsRequested)
    assert [call.args for call in wanted.calls] == [{"a": 1}, {"a": 2}]
    assert isinstance(said, ModelAnswered)
    assert said.text == "done"
    assert isinstance(over, ModelFailed)


async def test_a_single_text_is_one_line_and_not_its_letters() -> None:
    said = await ScriptedModel("hello").respond(REQUEST)
    assert isinstance(said, ModelAnswered)
    assert said.text == "hello"


@pytest.mark.parametrize(
    "line", [{"role": "assistant", "content": "x"}, ("look", {"a": 1}), [("look",)], [("look", "a")], None, 3]
)
async def test_what_is_no_line_is_told_with_the_way_out(line: Any) -> None:
    told = f"{line!r} is no line of a script: write a text, or a list of calls such as [('tool', {{'argument': 1}})]"
    with pytest.raises(AppError, match=re.escape(told)):
        await ScriptedModel([line]).respond(REQUEST)
