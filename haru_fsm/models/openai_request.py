"""A request to a model, as the body that chat completions take. Pure."""

from __future__ import annotations

from collections.abc import Set

from haru_fsm.conversation import JSON
from haru_fsm.models import ModelRequest
from haru_fsm.models.hints import hinted
from haru_fsm.models.openai_messages import messages_of
from haru_fsm.models.openai_schema import declared
from haru_fsm.models.openai_signatures import signs
from haru_fsm.models.retrying import Amendment

OPTIONAL = ("stream_options", "max_completion_tokens", "max_tokens", "reasoning_effort", "temperature", "tool_choice")
"""Fields that some gateways or models refuse, and that a request can do without."""


def build_body(
    request: ModelRequest,
    amendment: Amendment,
    *,
    name: str,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    length_in: str = "max_completion_tokens",
    streamed: bool = False,
    refused: Set[str] = frozenset(),
) -> JSON:
    """The whole body, changed as the amendment says, and without the optional fields that were `refused` before.

    `length_in` is the field for `max_output_tokens`: OpenAI's models since o1 refuse `max_tokens`, many servers that
    speak like OpenAI know nothing else, and some ignore what they don't know.
    """
    contents = hinted(request, amendment.hint)
    body: JSON = {"model": name, "messages": messages_of(request.system, contents, to_gemini=signs(name))}
    if request.declarations:
        body["tools"] = [declared(one) for one in request.declarations]
        if not request.tools_allowed:
            # The declarations stay: the history speaks of them.
            body["tool_choice"] = "none"
    if streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if temperature is not None:
        body["temperature"] = temperature
    body |= _room(amendment, max_output_tokens, length_in)
    return {key: value for key, value in body.items() if key not in refused}


def _room(amendment: Amendment, max_output_tokens: int | None, length_in: str) -> JSON:
    """How long the reply may be.

    A re-ask after a reply that was cut off has no limit but the model's own, since a number above that is refused and
    nothing tells which it is. Where even that was not enough and thoughts have taken part of it, the model is told to
    think less; only models that were seen to think are, because the others refuse the setting.
    """
    if not amendment.cut_off:
        return {} if max_output_tokens is None else {length_in: max_output_tokens}
    unlimited = max_output_tokens is None or amendment.cut_off > 1
    return {"reasoning_effort": "low"} if unlimited and amendment.thought else {}
