"""What the offline planner reads out of a request: the question, and what was called and found for it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.json_safe import safe_text
from haru_fsm.models.offline_phrases import ASKS_BACK, ENGLISH, KOREAN, OFFERS_PERSON, WANTS_PERSON, Phrases
from haru_fsm.models.offline_sentences import AGREES, ASKS, ELLIPSIS, ENOUGH, POINTS_BACK
from haru_fsm.models.offline_words import GENERAL, heard, says, state_named, states

READ_CHARS = 4_000
"""Characters of a message that are read: its two ends, where a longer one says what it wants."""

_LETTERED_ID = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{1,8}[-_]?\d[A-Za-z0-9_-]{2,}")
_LATIN_WORD, _HANGUL = re.compile("[A-Za-z]{2,}"), re.compile("[ㄱ-ㅎㅏ-ㅣ가-힣]")
_LONG_NUMBER = re.compile(r"(?<![\w,.-])\d{6,}(?![\w,])")
_AMOUNT = re.compile(r"(?<![\w-])(\d[\d,]*)\s*(만|천)?\s*(원)?(?![A-Za-z0-9-])")
_FACTORS = {"만": 10_000, "천": 1_000, None: 1, "": 1}
_NOTE = re.compile(r"\s*\(.*\)\s*", re.DOTALL)
"""A line that the engine has put in: neither the customer's nor the model's."""
_NAME_WORD = r"[가-힣A-Za-z0-9-]{2,}"
_DEEPEST = 6
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Seen:
    """One call that was made, and what came of it."""

    name: str
    args: JSON
    response: JSON

    @property
    def value(self) -> Any:
        """What the tool gave, without its wrapping."""
        return self.response.get("result", self.response)

    @property
    def reason(self) -> str | None:
        """Why it gave nothing, if it gave nothing: with the note beside it, which may say that nobody knows."""
        for said in (self.response, self.value):
            if isinstance(said, dict) and said.get("error"):
                return " ".join(_plain(said[key]) for key in ("error", "note") if said.get(key))
        return None

    @property
    def records(self) -> list[JSON]:
        """All objects in what it gave, the outer ones first."""
        return [] if self.reason is not None else list(_objects(self.value))


@dataclass(frozen=True)
class Situation:
    """Where a run stands. `seen` are this question's calls in their order, `before` those of earlier questions."""

    question: str
    seen: tuple[Seen, ...] = ()
    before: tuple[Seen, ...] = ()
    context: str = ""
    """The whole message, where `question` is one part of it."""
    say: Phrases = KOREAN
    """What the planner says of itself, in the customer's language."""
    in_korea: bool = True
    """The app speaks Korean: what it searches in does, too."""

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The numbers of things in the question, in their order; those with letters are surer than bare digits."""
        lettered = _LETTERED_ID.findall(self.question)
        return tuple(dict.fromkeys(lettered or _LONG_NUMBER.findall(self.question)))

    @cached_property
    def amounts(self) -> tuple[int, ...]:
        """Numbers in the question that name nothing, "3천원" as 3000; sums of money come first."""
        rest = _LONG_NUMBER.sub(" ", _LETTERED_ID.sub(" ", self.question)) if self.ids else self.question
        found = [
            (int(digits.replace(",", "")) * _FACTORS[factor], bool(won or factor))
            for digits, factor, won in _AMOUNT.findall(rest)
            if len(digits) < 16
        ]
        return tuple(number for number, money in sorted(found, key=lambda each: not each[1]))

    @cached_property
    def pointed_at(self) -> str | None:
        """The number of the one thing that was spoken of before, where the question points back at it."""
        said = (value for seen in self.before for value in seen.args.values() if isinstance(value, str))
        found = dict.fromkeys(value for value in said if _LETTERED_ID.fullmatch(value))
        return next(iter(found)) if len(found) == 1 and POINTS_BACK.search(self.question) else None

    def called(self, name: str) -> tuple[Seen, ...]:
        """This question's calls of one tool."""
        return tuple(seen for seen in self.seen if seen.name == name)


def read(contents: Sequence[JSON]) -> Situation:
    """The situation that these contents describe. What makes no sense in them is passed over."""
    turns = [_Turn(content) for content in contents if isinstance(content, dict)]
    asked = max((i for i, turn in enumerate(turns) if turn.is_message), default=-1)
    question = _whole_question(turns[: asked + 1])
    seen, before = tuple(_calls(turns[asked + 1 :])), tuple(_calls(turns[: asked + 1]))
    said = [turn.text for turn in reversed(turns) if turn.is_message]
    return Situation(question, seen, before, say=ENGLISH if _in_english(said) else KOREAN)


def is_korean(text: str) -> bool:
    """Whether there is any Hangul in a text."""
    return bool(_HANGUL.search(text))


def _in_english(said: Sequence[str]) -> bool:
    """Whether a customer who has said this, the last thing first, writes English. A number or an "ok" says nothing."""
    for text in said:
        words = _LATIN_WORD.findall(_LETTERED_ID.sub(" ", text))
        if is_korean(text):
            return False
        if len(words) > 1:
            return True
    return any(_LATIN_WORD.search(_LETTERED_ID.sub(" ", text)) for text in said)


def matching(records: Sequence[JSON], question: str) -> list[JSON]:
    """The records that a question means: those in a state it names, those with a value it says."""
    chosen = list(records)
    wanted = states(question)
    if wanted:
        # A state that no record has leaves none: "배송중인 주문" of somebody without any.
        chosen = [record for record in chosen if wanted & states_of(record)]
    said = [(record, _words_said(record, question)) for record in chosen]
    # Of "wireless earphones" the wireless mouse has less; "earphones and a mouse" are two things.
    kinds = {words for _, words in said}
    return [record for record, words in said if not any(words < other for other in kinds)]


def states_of(record: JSON) -> frozenset[str]:
    """The states that the values of a record name."""
    return frozenset(state for value in record.values() if isinstance(value, str) for state in state_named(value))


def _words_said(record: JSON, question: str) -> frozenset[str]:
    """The words of a record's names and values that the question says."""
    values = [value for value in record.values() if isinstance(value, str) and len(value) <= _LONGEST_NAME]
    words = {word for value in values if not state_named(value) for word in re.findall(_NAME_WORD, value)}
    return frozenset(word for word in words if says(question, word))


class _Turn:
    """One content, taken apart."""

    def __init__(self, content: JSON) -> None:
        listed = content.get("parts")
        parts = [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []
        self.role = content.get("role")
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
        self.text = "".join(text for text in texts if not _NOTE.fullmatch(text)).strip()
        self.calls = [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]
        self.responses = [part["functionResponse"] for part in parts if isinstance(part.get("functionResponse"), dict)]

    @property
    def is_message(self) -> bool:
        """Whether a customer wrote this."""
        return self.role == "user" and bool(self.text) and not self.responses


def _whole_question(turns: Sequence[_Turn]) -> str:
    """The last message, with the earlier ones that it completes because they were answered with a question."""
    spoken = [turn for turn in turns if turn.text and not turn.responses and not turn.calls]
    if not spoken or not spoken[-1].is_message:
        return ""
    texts = [spoken[-1].text]
    for reply, message in zip(spoken[-2::-2], spoken[-3::-2], strict=False):
        if reply.role != "model" or not message.is_message:
            break
        if reply.text.endswith(OFFERS_PERSON) and AGREES.search(texts[0]):
            return _ends(f"{message.text}\n{WANTS_PERSON[reply.text.endswith(OFFERS_PERSON[1])]}")
        answers = reply.text.endswith(ASKS_BACK) and not (ASKS.search(texts[0]) or ENOUGH.search(texts[0]))
        if not (answers or _goes_on(texts[0])):
            break  # not asked, or not answered: it is a question of its own
        texts.insert(0, message.text)
    return _ends("\n".join(texts))


def _goes_on(text: str) -> bool:
    """Whether a message names another thing and leaves out what is asked of it."""
    return bool(ELLIPSIS.search(text)) and heard(text) <= GENERAL


def _ends(text: str) -> str:
    text = unicodedata.normalize("NFC", safe_text(text))
    return text if len(text) <= READ_CHARS else f"{text[: READ_CHARS // 2]}\n{text[-READ_CHARS // 2 :]}"


def _calls(turns: Sequence[_Turn]) -> Iterator[Seen]:
    """Calls paired with their responses, by position."""
    pending: list[JSON] = []
    for turn in turns:
        if turn.calls:
            pending = turn.calls
        for call, response in zip(pending, turn.responses, strict=False):
            args, said = call.get("args"), response.get("response")
            yield Seen(
                name=str(response.get("name") or call.get("name") or ""),
                args=args if isinstance(args, dict) else {},
                response=said if isinstance(said, dict) else {"result": said},
            )
        if turn.responses:
            pending = []


def _objects(value: Any, depth: int = 0) -> Iterator[JSON]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner, depth + 1)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
