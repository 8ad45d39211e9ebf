"""A request to a model, as the body that the Gemini REST API takes. Pure.

The contents go in as they are, but for signatures that another model cannot have made (`gemini_signatures.py`). They
are in the API's own form since they were journaled, and are neither copied nor converted: through the SDK's types
(google-genai 3.6.1) a history of 160 steps would cost 140 ms a request, as bytes it costs 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.models import Declaration, ModelRequest
from haru_fsm.models.gemini_signatures import countersigned, wants_signatures, without_signatures, without_the_word
from haru_fsm.models.hints import hinted
from haru_fsm.models.retrying import Amendment
from haru_fsm.models.tokens import MOST_OUTPUT_TOKENS

MORE_ROOM = 4
"""By how much the allowance grows for each reply that was cut off."""


class Shared(dict[str, Any]):
    """A piece of a request that nobody changes, and that is therefore never copied: the SDK copies its
    configuration deeply before each request, and a history is long."""

    def __deepcopy__(self, _memo: object) -> Shared:
        return self


def build_body(
    request: ModelRequest, amendment: Amendment, *, name: str, temperature: float, max_output_tokens: int | None
) -> JSON:
    """The whole body: contents, system instruction, tools and generation settings, changed as the amendment says."""
    body: JSON = {
        "contents": [Shared(content) for content in _apart(_signed(hinted(request, amendment.hint), amendment, name))],
        "generationConfig": _generation(amendment, name, temperature, max_output_tokens),
    }
    if request.system:
        body["systemInstruction"] = Shared(parts=[{"text": request.system}])
    if request.declarations:
        body["tools"] = [Shared(functionDeclarations=[_declared(one) for one in request.declarations])]
        if not request.tools_allowed:
            # The declarations stay: the history speaks of them.
            body["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    return body


def _signed(contents: Iterable[JSON], amendment: Amendment, name: str) -> Iterable[JSON]:
    """The contents with the signatures that this model takes."""
    bare = without_signatures(contents) if amendment.adapted else contents
    if not wants_signatures(name):
        return without_the_word(bare)
    return countersigned(bare) if amendment.adapted else bare


def _apart(contents: Iterable[JSON]) -> Iterator[JSON]:
    """The contents, with responses alone in their turn: what else is said beside them follows in a turn of its own.

    Gemini 3.6 and later refuse text after a response as a turn of the model, or answer it with nothing; two turns of
    a user in a row are taken by all (deepnoodle-ai/dive#287, vellum-ai/vellum-assistant#39495, dust-tt/dust#32270).
    """
    for content in contents:
        parts = content["parts"]
        responses = [part for part in parts if "functionResponse" in part] if content["role"] == "user" else []
        if len(responses) in (0, len(parts)):
            yield content
        else:
            yield {**content, "parts": responses}
            yield {**content, "parts": [part for part in parts if "functionResponse" not in part]}


def _generation(amendment: Amendment, name: str, temperature: float, max_output_tokens: int | None) -> JSON:
    generation: JSON = {"temperature": temperature}
    if max_output_tokens is not None:
        room = max_output_tokens * MORE_ROOM**amendment.cut_off
        generation["maxOutputTokens"] = max(max_output_tokens, min(room, MOST_OUTPUT_TOKENS))
    elif amendment.cut_off and amendment.thought:
        # All the room there is was not enough, and thoughts have taken part of it. Only models that were seen to
        # think are told to think less: the others refuse the setting.
        generation["thinkingConfig"] = {"thinkingBudget": 512} if "2.5" in name else {"thinkingLevel": "LOW"}
    return generation


def _declared(declaration: Declaration) -> JSON:
    declared: JSON = {"name": declaration.name, "description": declaration.description}
    if declaration.parameters is not None:
        declared["parametersJsonSchema"] = declaration.parameters
    return declared
