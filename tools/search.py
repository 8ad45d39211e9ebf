"""Finding entries by the words of a question, without a model.

Korean glues particles to words, so words are compared by the pairs of neighbouring letters in them ("배송비는"
shares 배송 and 송비 with "배송비"). A pair counts the more the fewer entries have it, and more in a heading than
in a text. Source: the bigram variant of TF-IDF that is usual for Korean and Japanese search.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

_WORDS = re.compile(r"[가-힣]+|[a-z]+|\d+")
_EVERYDAY = re.compile(
    r"알려\s*주\S*|해\s*주\S*|보여\s*주\S*|추천\S*|찾아\S*|궁금\S*|있나요|있어요|있을까요|있습니까|되나요|될까요|됩니까"
    r"|인가요|하나요|할까요|어떻게|언제\S*|가능\S*|얼마\S*|무엇\S*|뭐\S*|주세요|싶어요|싶은데\S*|하려면|합니다|입니다|상품|제품"
)
"""What every question is made of; it says nothing of what is wanted."""
_HEADING = 2.0
_BESIDE_BEST = 0.4
"""Share of the best entry's score from which another entry is worth showing."""


class Index(Generic[T]):
    """Entries that can be searched. Each has a heading (title, keywords) and a text."""

    def __init__(self, entries: Sequence[tuple[T, str, str]]) -> None:
        self._entries = [(entry, Counter(_pairs(heading)), Counter(_pairs(text))) for entry, heading, text in entries]
        self._having = Counter(pair for _, heading, text in self._entries for pair in {*heading, *text})

    def find(self, question: str, limit: int) -> list[T]:
        """The entries that fit the question best, best first; none where nothing fits."""
        wanted = set(_pairs(_EVERYDAY.sub(" ", unicodedata.normalize("NFC", question).lower())))
        scored = [(self._score(wanted, heading, text), entry) for entry, heading, text in self._entries]
        best = max((score for score, _ in scored), default=0.0)
        fitting = [(score, entry) for score, entry in scored if score and score >= best * _BESIDE_BEST]
        fitting.sort(key=lambda pair: -pair[0])  # stable: equals stay in the order of the data
        return [entry for _, entry in fitting[:limit]]

    def _score(self, wanted: set[str], heading: Counter[str], text: Counter[str]) -> float:
        return sum(
            self._rarity(pair) * (_HEADING if pair in heading else 1.0)
            for pair in wanted
            if pair in heading or pair in text
        )

    def _rarity(self, pair: str) -> float:
        return math.log(1 + len(self._entries) / self._having[pair])


def _pairs(text: str) -> Iterator[str]:
    for word in _WORDS.findall(unicodedata.normalize("NFC", text).lower()):
        if word.isascii():
            yield word
        yield from (word[i : i + 2] for i in range(len(word) - 1) if not word.isascii())
