"""Thought signatures of Gemini, where it is spoken to in chat completions.

Gemini 3 signs the first call of a reply there, too, and refuses the next request where the call comes back without its
signature (langchain-ai/langchain#37347, vellum-ai/vellum-assistant#42421). It stands beside the call, in a field that
OpenAI does not have, and is kept where the journal has Gemini's own; only to a Gemini is it sent back.
"""

from __future__ import annotations

from haru_fsm.conversation import JSON
from haru_fsm.models.gemini_parts import is_base64
from haru_fsm.models.gemini_signatures import wants_signatures
from haru_fsm.models.replies import as_dict

FIELD = "extra_content"
_SELLERS = ("google", "vertex")


def signature_of(call: JSON) -> str | None:
    """The signature that came with a call; None where there is none."""
    beside = as_dict(call.get(FIELD))
    told = (as_dict(beside.get(seller)).get("thought_signature") for seller in _SELLERS)
    return next((signature for signature in told if isinstance(signature, str) and is_base64(signature)), None)


def signs(name: str) -> bool:
    """Whether the model of this name, as gateways write it ("google/gemini-3-flash"), asks for signatures."""
    return wants_signatures(name.rpartition("/")[2])


def signed(call: JSON, part: JSON) -> JSON:
    """The call as it is sent, with the signature of the part that it stands in."""
    signature = part.get("thoughtSignature")
    return call if signature is None else {**call, FIELD: {"google": {"thought_signature": signature}}}
