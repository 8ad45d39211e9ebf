"""How the offline planner tells what tools have given: sentences, articles, and records with the fields asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.json_safe import safe_text
from haru_fsm.models.offline_phrases import Phrases
from haru_fsm.models.offline_reading import Seen, matching
from haru_fsm.models.offline_words import ACTS, GENERAL, concepts_of_field, heard, says

SHOWN_RECORDS = 10
_SHOWN_FIELDS = 7
_SHOWN_CHARS = 600
_TITLES = ("product_name", "title", "name", "item", "product")
_TEXTS = ("body", "text", "content", "answer", "snippet")
_SENTENCES = ("message", "안내", "notice")
_FEW = re.compile(
    r"(?:최근|마지막|지난)\D{0,6}?(\d{1,2})\s*(?:개|건)|(\d{1,2})\s*(?:개|건)\s*만|\b(?:last|latest|recent)\s+(\d{1,2})\b"
)
_WITH_STATUS = frozenset({"arrival", "dispatch", "location", "parcel"}) | ACTS
"""Asking for one of these, people want to know the state as well."""


@dataclass(frozen=True)
class Teller:
    """Tells of results what a question asks for, in one language."""

    question: str
    say: Phrases

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The concepts that the question speaks of."""
        return heard(self.question)

    @cached_property
    def few(self) -> int | None:
        """How many records the question asks for, as in "최근 3건만"; None where it does not say."""
        found = _FEW.search(self.question)
        return int(next(filter(None, found.groups()))) or None if found else None

    def told(self, seen: Sequence[Seen]) -> list[str]:
        """The texts that tell of these results: sentences first, then one block for each record."""
        values = [each.value for each in seen]
        listed = [item for value in values if isinstance(value, list) for item in value]
        plain = [text for item in (*values, *listed) if isinstance(item, str | int | float) and (text := clean(item))]
        rows = [item for item in listed if isinstance(item, dict) and item]
        articles = [row for row in rows if _is_article(row)]
        if articles:
            return self._articles(articles)
        records = [value for value in values if isinstance(value, dict) and value]
        records = matching(records, self.question) or records
        records += matching(rows, self.question)
        records = records[: self.few]
        sentences = list(dict.fromkeys(clean(said) for record in records if (said := _first(record, _SENTENCES))))
        blocks = [block for record in records[:SHOWN_RECORDS] if (block := self._block(record))]
        opening = [] if sentences or not blocks else [self.say.found]
        more = [self.say.more] if max(len(records), len(plain)) > SHOWN_RECORDS else []
        return [*plain[:SHOWN_RECORDS], *sentences, *opening, *blocks, *more]

    def _articles(self, articles: Sequence[JSON]) -> list[str]:
        """The best article, and another one if its title has what the question speaks of and the best one's has not."""
        titles = [heard(_first(row, _TITLES) or "") for row in articles]
        rest = self.spoken - titles[0] - {"policy"}
        also = next((row for row, title in zip(articles, titles, strict=True) if title & rest), None)
        return [_article(row) for row in (articles[0], also) if row is not None]

    def _block(self, record: JSON) -> str:
        """A record on several lines: its title, and the fields that were asked for (else the first few)."""
        title_key = next((key for key in _TITLES if self._text(record.get(key))), None)
        fields = {key: value for key, value in record.items() if key != title_key and key not in _SENTENCES}
        done = _first(record, _SENTENCES) is not None  # all of what was done is told
        asked = {} if done else {key: value for key, value in fields.items() if self._is_asked(key, fields)}
        asked = asked or {key: value for key, value in fields.items() if not done and self._is_named(value, key)}
        shown = asked or dict(list(fields.items())[:_SHOWN_FIELDS])
        lines = [line for key, value in shown.items() for line in self._field(key, value)]
        title = [f"  {clean(record[title_key])}"] if title_key else []
        first, *others = [*title, *lines] or [""]
        return "\n".join([f"- {first.strip()}", *others]) if first else ""

    def _is_asked(self, key: str, fields: JSON) -> bool:
        """Whether the question speaks of this field."""
        if (concepts_of_field(key) - GENERAL) & self.spoken:
            return True
        return key == "status" and bool(self.spoken & _WITH_STATUS) and len(fields) > 1

    def _is_named(self, value: Any, *keys: str) -> bool:
        """Whether the question has the name of this field, or of one within it, and not its value already."""
        if isinstance(value, str) and value.lower() in self.question.lower():
            return False
        within = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
        names = {self.say.label(key) for key in (*keys, *(key for each in within for key in each))}
        return any(map(self._has, names))

    def _has(self, name: str) -> bool:
        if not name.isascii():
            return says(self.question, name)
        return set(name.lower().split()) <= set(re.findall("[a-z]+", self.question.lower()))

    def _field(self, key: str, value: Any) -> list[str]:
        """The lines of one field; none for what has nothing to say."""
        name = self.say.label(key)
        if isinstance(value, list):
            inner = [f"    {self.line(each)}" for each in value[:SHOWN_RECORDS]]
            return [f"  {name}:", *inner] if inner else []
        if isinstance(value, dict):
            return [f"  {name}: {self.line(value)}"] if value else []
        text = self._text(value, key)
        return [f"  {name}: {text}"] if text else []

    def line(self, value: Any) -> str:
        """Something on one line."""
        if not isinstance(value, dict):
            return self._text(value)
        title = _first(value, _TITLES)
        told = {key: self._text(inner, key) for key, inner in value.items() if key not in _TITLES}
        texts = [f"{self.say.line_label(key)}{text}" for key, text in told.items() if text]
        if title is None:
            return ", ".join(texts)
        return f"{clean(title)} ({', '.join(texts)})" if texts else clean(title)

    def _text(self, value: Any, key: str = "") -> str:
        """A single value as customers read it; amounts in won get their unit."""
        if isinstance(value, bool):
            return self.say.yes if value else self.say.no
        if isinstance(value, int) and key.endswith("_won"):
            return self.say.won(value, key)
        if isinstance(value, int) and key.endswith("_percent"):
            return f"{value}%"
        return clean(value) if isinstance(value, str | int | float) else ""


def clean(value: Any) -> str:
    """A text of a tool's on one line, without the marks that a chat window would show as they are."""
    text = " ".join(safe_text(str(value)).replace("*", " ").replace("`", " ").split()).lstrip("# ")
    if len(text) <= _SHOWN_CHARS:
        return text
    return text[:_SHOWN_CHARS].rstrip("0123456789,.") + "…"  # half a number would be another number


def _is_article(row: JSON) -> bool:
    """Something to read, and no record that has a text among its fields."""
    return _first(row, _TEXTS) is not None and (_first(row, _TITLES) is not None or len(row) < 3)


def _article(row: JSON) -> str:
    title, body = _first(row, _TITLES), clean(_first(row, _TEXTS))
    return f"[{clean(title)}] {body}" if title else body


def _first(record: JSON, keys: Sequence[str]) -> str | None:
    return next((str(record[key]) for key in keys if isinstance(record.get(key), str) and record[key]), None)
