"""What an answer is wrapped in where a program was to read it: a label, a tag, a block of Markdown, a JSON object that
holds nothing else.

Models know the forms of frameworks ("Final Answer: ...", `<answer>...</answer>`, `{"response": "..."}`) and use them
where nobody has asked for them. The customer reads what is inside. Anything beside it, and it is no wrapping. Pure.
"""

from __future__ import annotations

import json
import re

LABELS = ("final answer", "finalanswer", "최종 답변")
_TAGS = "answer|response|final_answer"
_LABEL = re.compile(rf"\A[\s*_#>]*(?:{'|'.join(LABELS)})[\s*_]*[:\uff1a][\s*_]*", re.IGNORECASE)
_TAG = re.compile(rf"\A\s*<({_TAGS})>((?:(?!</?\1>).)*)</\1>\s*\Z", re.IGNORECASE | re.DOTALL)
_BLOCK = re.compile(
    r"\A\s*```(?:markdown|md|text|txt|plaintext)[ \t]*\r?\n((?:(?!```).)*)```\s*\Z", re.IGNORECASE | re.DOTALL
)
_OBJECT = re.compile(r"(?:```\w*[ \t]*\r?\n\s*)?(\{.*\})\s*(?:```)?", re.DOTALL)
_KEYS = ("answer", "response", "reply", "message", "text", "output", "content", "final_answer", "result")

BEGINNING = re.compile(rf"{_LABEL.pattern}|\A\s*(?:<(?:{_TAGS})>|\{{|```|`{{1,2}}\Z)", re.IGNORECASE)
"""How a text begins that may turn out to be wrapped."""


def unwrapped(text: str) -> str | None:
    """The answer in its wrapping; None for a text that is not wrapped."""
    if label := _LABEL.match(text):
        return text[label.end() :]
    if tag := _TAG.match(text):
        return tag[2].strip()
    if block := _BLOCK.match(text):
        return block[1].strip()
    boxed = _OBJECT.fullmatch(text.strip())
    return _only_text(boxed[1]) if boxed is not None else None


def _only_text(text: str) -> str | None:
    """The one text in a JSON object; None where it holds anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    inner = [value for key, value in found.items() if key in _KEYS]
    alone = len(inner) == 1 and found.keys() <= {*_KEYS, "type"} and found.get("type", "text") in _KEYS
    return inner[0] if alone and isinstance(inner[0], str) else None
