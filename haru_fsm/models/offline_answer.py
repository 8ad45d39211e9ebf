"""How the offline planner speaks: polite Korean for a chat window, without Markdown.

Every number in an answer was observed. What a tool said is quoted, never followed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.json_safe import safe_text
from haru_fsm.models.offline_choice import acts_wished
from haru_fsm.models.offline_plan import Plan, Unclear
from haru_fsm.models.offline_reading import ASKS_BACK, OFFERS_PERSON, Seen, Situation, matching
from haru_fsm.models.offline_sentences import AGREES, ASKS_WHO, COMPLAINS, DECLINES, GREETS, LEAVES, THANKS
from haru_fsm.models.offline_words import ACTS, GENERAL, LABELS, concepts_of_field, heard, label, with_object_particle

GREETING = "안녕하세요. 무엇을 도와드릴까요?"
NO_MATTER = "네, 알겠습니다. 더 필요하신 것이 있으면 언제든 말씀해 주세요."
WELCOME = "네, 도움이 되었다면 다행입니다. 더 궁금하신 점이 있으면 언제든 말씀해 주세요."
HERE = "네, 무엇을 도와드릴까요?"
FAREWELL = "네, 이용해 주셔서 감사합니다. 좋은 하루 보내세요."
WHO = "저는 고객님의 문의를 돕는 상담 도우미입니다. 무엇을 도와드릴까요?"
SORRY = f"불편을 드려 죄송합니다. {OFFERS_PERSON}"
UNCLEAR = f"죄송하지만 말씀을 이해하지 못했습니다. 주문이나 배송처럼 궁금하신 것을 적어 주세요. {OFFERS_PERSON}"
CANNOT = f"죄송하지만 문의하신 내용은 제가 확인하거나 처리할 수 없습니다. {OFFERS_PERSON}"
NOTHING = f"확인해 보았지만 해당하는 내용을 찾지 못했습니다. {OFFERS_PERSON}"
NO_TOOLS = f"죄송하지만 지금은 더 확인할 수 없어 답을 드리지 못했습니다. {OFFERS_PERSON}"
FOUND = "확인한 내용을 정리해 드립니다."
MORE = "그 밖에도 더 있습니다. 찾으시는 것을 말씀해 주시면 그것만 알려 드리겠습니다."
PARTLY = "일부 내용은 확인하지 못했습니다."

SMALL_TALK = (
    (LEAVES, FAREWELL),
    (THANKS, WELCOME),
    (DECLINES, NO_MATTER),
    (COMPLAINS, SORRY),
    (ASKS_WHO, WHO),
    (GREETS, GREETING),
    (AGREES, HERE),
)
"""What is said without a wish, and the answer; the first that fits."""
_WORD = re.compile("[가-힣]{2,}|[A-Za-z]{2,}")

HANGUL, LATIN = re.compile("[가-힣]"), re.compile("[A-Za-z]")

ZERO = {"minimum": "없음", "fee": "무료"}
"""What customers call an amount of nothing, by a part of its field's name."""
_SHOWN_RECORDS = 10
_SHOWN_FIELDS = 7
_SHOWN_CHARS = 600
_TITLES = ("product_name", "title", "name", "item", "product")
_TEXTS = ("body", "text", "content", "answer", "snippet")
_SENTENCES = ("message", "안내", "notice")
_WITH_STATUS = frozenset({"arrival", "dispatch", "location", "parcel"}) | ACTS
"""Asking for one of these, people want to know the state as well."""


def answers(planned: Sequence[tuple[Situation, Plan]]) -> str:
    """The answer to each part of the question. What asks the customer something comes last, and asks it once."""
    told = list(dict.fromkeys(answer(situation, plan) for situation, plan in planned))
    told.sort(key=lambda text: text.endswith((ASKS_BACK, OFFERS_PERSON)))
    if len(told) > 1:
        told[:-1] = [text.removesuffix(OFFERS_PERSON).rstrip() for text in told[:-1]]
        told[1:] = [text.removeprefix(FOUND).lstrip("\n") for text in told[1:]]
    return "\n".join(text for text in told if text)


def answer(situation: Situation, plan: Plan) -> str:
    """The answer to one part of it, from what has been seen."""
    if plan.unclear is not None:
        return ask_back(plan.unclear)
    if not situation.seen:
        return small_talk(situation.question) or not_understood(situation.question)
    seen = situation.called(plan.goal) if plan.goal else ()
    told = report(situation.question, seen or situation.seen)
    undone = plan.looks and acts_wished(situation.question) and not told.endswith(OFFERS_PERSON)
    return f"{told}\n{OFFERS_PERSON}" if undone else told


def from_what_is_there(situation: Situation) -> str:
    """The answer where no tool may be called any more."""
    return report(situation.question, situation.seen) if situation.seen else small_talk(situation.question) or NO_TOOLS


def small_talk(question: str) -> str | None:
    """The answer to thanks, a greeting, a no, and what else one says without a wish."""
    for said, reply in SMALL_TALK:
        if said.search(question):
            return reply
    return None


def not_understood(question: str) -> str:
    """The answer where there is nothing to be done: they have said nothing, or something of another trade."""
    return CANNOT if _WORD.search(question) else UNCLEAR


def ask_back(unclear: Unclear) -> str:
    """A question for what only the customer knows. It ends so that the next message is read together with this one."""
    wanted = with_object_particle(label(unclear.parameter.name))
    lines = [f"- {_clean(choice)}" for choice in unclear.parameter.choices]
    lines += [f"- {_line(record)}" for record in unclear.records[:_SHOWN_RECORDS]]
    if not lines:
        return f"처리해 드리려면 확인이 필요합니다. {wanted} 알려 {ASKS_BACK}"
    return "\n".join(["다음 가운데 어느 것인지 확인이 필요합니다.", *lines, f"{wanted} 알려 {ASKS_BACK}"])


def report(question: str, seen: Sequence[Seen]) -> str:
    """What was found, and honestly what was not."""
    told = (_clean(each.reason) for each in seen if each.reason is not None)
    reasons = list(dict.fromkeys(reason for reason in told if _is_korean(reason)))
    found = [text for text in _told(question, [each for each in seen if each.reason is None]) if text]
    if not found and all(each.reason is None for each in seen):
        return NOTHING
    if not found:
        return "\n".join(["죄송하지만 요청하신 대로 도와드리지 못했습니다.", *reasons, OFFERS_PERSON])
    return "\n".join([*found, *([PARTLY, *reasons] if reasons else [])])


def _is_korean(reason: str) -> bool:
    """Whether a reason is for customers. The engine's own words, and those of most libraries, are for the model."""
    return len(HANGUL.findall(reason)) > len(LATIN.findall(reason))


def _told(question: str, seen: Sequence[Seen]) -> list[str]:
    """The texts that tell of these results: sentences first, then one block for each record."""
    values = [each.value for each in seen]
    records = [value for value in values if isinstance(value, dict) and value]
    listed = [item for value in values if isinstance(value, list) for item in value]
    plain = [_clean(item) for item in (*values, *listed) if isinstance(item, str | int | float) and str(item)]
    rows = [item for item in listed if isinstance(item, dict) and item]
    articles = [row for row in rows if _first(row, _TEXTS)]
    if articles:
        return _articles(question, articles)
    records = matching(records, question) or records
    records += matching(rows, question)
    sentences = list(dict.fromkeys(_clean(text) for record in records if (text := _first(record, _SENTENCES))))
    blocks = [block for record in records[:_SHOWN_RECORDS] if (block := _block(record, question))]
    opening = [] if sentences or not blocks else [FOUND]
    more = [MORE] if max(len(records), len(plain)) > _SHOWN_RECORDS else []
    return [*plain[:_SHOWN_RECORDS], *sentences, *opening, *blocks, *more]


def _articles(question: str, articles: Sequence[JSON]) -> list[str]:
    """The best article, and another one if its title has what the question speaks of and the best one's has not."""
    titles = [heard(_first(row, _TITLES) or "") for row in articles]
    rest = heard(question) - titles[0] - {"policy"}
    also = next((row for row, title in zip(articles, titles, strict=True) if title & rest), None)
    return [_article(row) for row in (articles[0], also) if row is not None]


def _article(row: JSON) -> str:
    title, body = _first(row, _TITLES), _clean(_first(row, _TEXTS))
    return f"[{_clean(title)}] {body}" if title else body


def _block(record: JSON, question: str) -> str:
    """A record on several lines: its title, and the fields that were asked for (else the first few)."""
    title_key = next((key for key in _TITLES if _told_as_text(record.get(key))), None)
    fields = {key: value for key, value in record.items() if key != title_key and key not in _SENTENCES}
    done = _first(record, _SENTENCES) is not None  # all of what was done is told
    asked = {} if done else {key: value for key, value in fields.items() if _is_asked(key, question, fields)}
    shown = asked or dict(list(fields.items())[:_SHOWN_FIELDS])
    lines = [line for key, value in shown.items() for line in _field(key, value)]
    title = [f"  {_clean(record[title_key])}"] if title_key else []
    first, *others = [*title, *lines] or [""]
    return "\n".join([f"- {first.strip()}", *others]) if first else ""


def _is_asked(key: str, question: str, fields: JSON) -> bool:
    """Whether the question speaks of this field."""
    spoken = heard(question)
    if (concepts_of_field(key) - GENERAL) & spoken:
        return True
    return key == "status" and bool(spoken & _WITH_STATUS) and len(fields) > 1


def _field(key: str, value: Any) -> list[str]:
    """The lines of one field; none for what has nothing to say."""
    if isinstance(value, list):
        inner = [f"    {_line(each)}" for each in value[:_SHOWN_RECORDS]]
        return [f"  {label(key)}:", *inner] if inner else []
    if isinstance(value, dict):
        return [f"  {label(key)}: {_line(value)}"] if value else []
    text = _told_as_text(value, key)
    return [f"  {label(key)}: {text}"] if text else []


def _line(value: Any) -> str:
    """Something on one line."""
    if not isinstance(value, dict):
        return _told_as_text(value)
    title = _first(value, _TITLES)
    told = {key: _told_as_text(inner, key) for key, inner in value.items() if key not in _TITLES}
    texts = [f"{label(key)} {text}" if key in LABELS else text for key, text in told.items() if text]
    if title is None:
        return ", ".join(texts)
    return f"{_clean(title)} ({', '.join(texts)})" if texts else _clean(title)


def _told_as_text(value: Any, key: str = "") -> str:
    """A single value as customers read it; amounts in won get their unit."""
    if isinstance(value, bool):
        return "예" if value else "아니요"
    if isinstance(value, int) and key.endswith("_won"):
        return f"{value:,}원" if value else next((word for part, word in ZERO.items() if part in key), "0원")
    if isinstance(value, int) and key.endswith("_percent"):
        return f"{value}%"
    return _clean(value) if isinstance(value, str | int | float) else ""


def _first(record: JSON, keys: Sequence[str]) -> str | None:
    return next((str(record[key]) for key in keys if isinstance(record.get(key), str) and record[key]), None)


def _clean(value: Any) -> str:
    """A text of a tool's on one line, without the marks that a chat window would show as they are."""
    text = " ".join(safe_text(str(value)).replace("*", " ").replace("`", " ").split()).lstrip("# ")
    if len(text) <= _SHOWN_CHARS:
        return text
    return text[:_SHOWN_CHARS].rstrip("0123456789,.") + "…"  # half a number would be another number
