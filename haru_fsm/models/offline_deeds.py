"""An act that no concept names, wished for in the words of its tool.

In English those are the words of its name (block_card: "please block my card"), in Korean what its description does to
what ("객실을 청소합니다." : "객실 청소해 주세요"). All of them have to be said: it is about to act.
"""

from __future__ import annotations

import re

from haru_fsm.models.offline_sentences import asks, sentences, wishes
from haru_fsm.models.offline_tools import Tool

_FILLING = frozenset({"a", "an", "the", "my", "to", "now", "it", "customer", "customers"})
"""Words in names of tools that nobody says."""
_DEED = re.compile(r"(?P<what>[가-힣]{2,6}?)(을|를)\s*(?P<does>[가-힣]{2,4}?)(합니다|한다|해요|함|하기)\s*$")
_WISHED = r"\s*(좀\s*)?(해\s*[주줘달요]|할게|할래|하고\s*싶|시켜|부탁|신청|요청|요\b)"


def said_plainly(tool: Tool, question: str) -> bool:
    """Whether the customer clearly asks for what this tool does."""
    said = [sentence.lower() for sentence in sentences(question)]
    return _in_its_name(tool, said) or _in_its_description(tool, said)


def _in_its_name(tool: Tool, said: list[str]) -> bool:
    """A sentence that begins with the verb is a wish as well: "block card"."""
    words = [rf"\b{re.escape(word)}" for word in tool.name_words if word not in _FILLING]
    if len(words) < 2:
        return False
    about = [sentence for sentence in said if re.search(words[0], sentence)]
    wished = any(wishes(sentence) or re.match(rf"\s*{words[0]}", sentence) for sentence in about)
    return wished and not any(map(asks, about)) and all(re.search(word, " ".join(said)) for word in words)


def _in_its_description(tool: Tool, said: list[str]) -> bool:
    deed = _DEED.search(re.split(r"[.\n]", tool.description)[0])
    if deed is None:
        return False
    wished = re.compile(re.escape(deed["does"]) + _WISHED)
    return any(deed["what"] in sentence and wished.search(sentence) and wishes(sentence) for sentence in said)
