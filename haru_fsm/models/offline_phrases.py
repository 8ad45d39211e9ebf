"""What the offline planner says of itself, in Korean and in English: polite, for a chat window, without Markdown.

What a tool has said, and the names of its records, stay in the language of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from haru_fsm.models.offline_words import LABELS, label, with_object_particle

OFFERS_PERSON = ("상담원에게 연결해 드릴까요?", "Shall I pass this on to a person?")
"""How an offer ends. Who agrees to it wants a person."""
ASKS_BACK = ("주시겠어요?", "tell me that, please?")
"""How the planner's own questions end. What the customer says next completes the question before."""
WANTS_PERSON = ("상담원 연결해 주세요.", "Please connect me to a person.")


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """The phrases of one language."""

    offers_person: str
    greeting: str
    no_matter: str
    welcome: str
    here: str
    farewell: str
    who: str
    sorry: str
    unclear: str
    cannot: str
    nothing: str
    no_tools: str
    failed: str
    found: str
    more: str
    partly: str
    which: str
    needed: str
    yes: str
    no: str
    zero: tuple[tuple[str, str], ...]
    """What an amount of nothing is called, by a part of its field's name."""
    named: Mapping[str, str] = field(default_factory=dict)
    """What the tools at hand call a field, where the language has no name of its own for it."""

    @property
    def without_person(self) -> Phrases:
        """The same where nobody can be brought in: what cannot be done is not offered."""
        texts = {each.name: getattr(self, each.name) for each in fields(self)}
        spared: dict[str, Any] = {
            name: text.replace(self.offers_person, "").rstrip() for name, text in texts.items() if isinstance(text, str)
        }
        return replace(self, **spared)

    @property
    def is_english(self) -> bool:
        return self.yes == "yes"

    def label(self, key: str) -> str:
        """What customers call a field."""
        if self.is_english:
            return key.removesuffix("_won").removesuffix("_percent").replace("_", " ")
        return label(key) if key in LABELS else self.named.get(key, label(key))

    def line_label(self, key: str) -> str:
        """The label that stands before a value inside a line; none where it would only be the field's own name."""
        return f"{self.label(key)} " if self.is_english or key in LABELS or key in self.named else ""

    def ask_for(self, key: str) -> str:
        """A question for what only the customer knows."""
        if self.is_english:
            return f"I need the {self.label(key)}. Could you {ASKS_BACK[1]}"
        return f"{with_object_particle(self.label(key))} 알려 {ASKS_BACK[0]}"

    def won(self, amount: int, key: str) -> str:
        """An amount of money in won."""
        if amount == 0:
            return next((word for part, word in self.zero if part in key), "0 won" if self.is_english else "0원")
        return f"{amount:,} won" if self.is_english else f"{amount:,}원"


KOREAN = Phrases(
    offers_person=OFFERS_PERSON[0],
    greeting="안녕하세요. 무엇을 도와드릴까요?",
    no_matter="네, 알겠습니다. 더 필요하신 것이 있으면 언제든 말씀해 주세요.",
    welcome="네, 도움이 되었다면 다행입니다. 더 궁금하신 점이 있으면 언제든 말씀해 주세요.",
    here="네, 무엇을 도와드릴까요?",
    farewell="네, 이용해 주셔서 감사합니다. 좋은 하루 보내세요.",
    who="저는 고객님의 문의를 돕는 상담 도우미입니다. 무엇을 도와드릴까요?",
    sorry=f"불편을 드려 죄송합니다. {OFFERS_PERSON[0]}",
    unclear=f"죄송하지만 말씀을 이해하지 못했습니다. 궁금하신 내용을 조금 더 자세히 적어 주세요. {OFFERS_PERSON[0]}",
    cannot=f"죄송하지만 문의하신 내용은 제가 확인하거나 처리할 수 없습니다. {OFFERS_PERSON[0]}",
    nothing=f"확인해 보았지만 해당하는 내용을 찾지 못했습니다. {OFFERS_PERSON[0]}",
    no_tools=f"죄송하지만 지금은 더 확인할 수 없어 답을 드리지 못했습니다. {OFFERS_PERSON[0]}",
    failed="죄송하지만 요청하신 대로 도와드리지 못했습니다.",
    found="확인한 내용을 정리해 드립니다.",
    more="그 밖에도 더 있습니다. 찾으시는 것을 말씀해 주시면 그것만 알려 드리겠습니다.",
    partly="일부 내용은 확인하지 못했습니다.",
    which="다음 가운데 어느 것인지 확인이 필요합니다.",
    needed="처리해 드리려면 확인이 필요합니다.",
    yes="예",
    no="아니요",
    zero=(("minimum", "없음"), ("fee", "무료")),
)
ENGLISH = Phrases(
    offers_person=OFFERS_PERSON[1],
    greeting="Hello. What can I do for you?",
    no_matter="All right. Just write if there is anything else.",
    welcome="You are welcome. Just write if there is anything else.",
    here="What can I do for you?",
    farewell="Thank you, and have a good day.",
    who="I am an assistant that answers customers' questions. What can I do for you?",
    sorry=f"I am sorry about that. {OFFERS_PERSON[1]}",
    unclear=f"I am sorry, I did not understand that. Please write a little more. {OFFERS_PERSON[1]}",
    cannot=f"I am sorry, that is something that I cannot look up or do. {OFFERS_PERSON[1]}",
    nothing=f"I have looked, and found nothing of the kind. {OFFERS_PERSON[1]}",
    no_tools=f"I am sorry, I cannot look up more just now, and have no answer. {OFFERS_PERSON[1]}",
    failed="I am sorry, I could not do that.",
    found="This is what I found.",
    more="There are more. Tell me which you are looking for, and I will show only those.",
    partly="Some of it I could not look up.",
    which="Which of these do you mean?",
    needed="Before I can do that I have to know more.",
    yes="yes",
    no="no",
    zero=(("minimum", "none"), ("fee", "free")),
)
