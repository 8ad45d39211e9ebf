"""What customers want with a sentence, as the offline planner hears it: a wish, a question, a no, thanks, a greeting.

Regular expressions over what people type in a chat, in Korean and English. What the sentence is about is none of their
business: those are the concepts of `offline_words.py`.
"""

from __future__ import annotations

import re

WISHES = re.compile(
    r"주세요|주셔요|줘|달라|부탁|싶|할게|할래|원해|원합|신청|요청|바랍|하겠|시켜|접수|연결"
    r"|\b(please|want|would like|'d like)\b|^\s*(cancel|return|change|issue)\b"
)
"""Somebody wants something done (or told: see ASKS)."""
ASKS = re.compile(
    r"알려|보여|궁금|어떻게|언제|얼마|가능한|가능할|되나|될까|돼요\?|됩니까|인가요|있나요|있어요|하나요|뭐|무엇|왜|어디|며칠"
    r"|방법|기준|규정|정책|정리|찾아|추천|조회|확인|(?<!가능하)(?<=[오되하으니])면[\s,]"
    r"|\b(how|when|what|why|where|which|show|tell|if|can i)\b"
)
"""Somebody wants to know something, or says "if": nothing is done upon that."""
POLITE_WISH = re.compile(r"(주실|줄) 수|주시겠|\b(could|can|would) you\b")
"""Asks for an act in the form of a question."""
REFUSES = re.compile(r"지\s*마|지\s*말|말고|\bdon't\b|\bdo not\b")
"""Says what is not to be done."""
POINTS_BACK = re.compile(r"그거|그것|그걸|그 주문|이거|이것|이걸|이 주문|저 주문|해당|방금|\b(it|that|this)\b")
"""Means something that was talked about before."""
AGREES = re.compile(r"^\s*(네+|넵|예|응|좋아요|그래요?|그렇게|부탁\S*|yes|ok)([\s,.!~]|$)", re.IGNORECASE)
DECLINES = re.compile(r"^\s*(아니|괜찮|됐어|no\b)", re.IGNORECASE)
GREETS = re.compile(r"^\s*(안녕|반가|hello|hi\b)", re.IGNORECASE)
ELLIPSIS = re.compile(r"^\s*(그럼\s+|그러면\s+)?\S+(\s\S+)?(은|는)요?\s*[?.~]*\s*$")
"""Names another thing, and means the question before: "텀블러는요?"."""
ENOUGH = re.compile(
    r"^\s*(아니(요|오|에요)?|됐(어요|습니다)|괜찮\S*|필요\s*없\S*|[\s,.!~])+$|^.{0,6}(감사|고마|고맙|thank).{0,12}$",
    re.IGNORECASE,
)
"""Wants nothing more, and answers no question."""
LEAVES = re.compile(r"^\s*(안녕히|잘 있|다음에 또|수고하세요\s*$|(good\s*)?bye\b)", re.IGNORECASE)
COMPLAINS = re.compile(
    r"화가|화나|짜증|불만|실망|최악|너무하|어이없|[😠😡🤬]|\b(angry|terrible|awful)\b", re.IGNORECASE
)
ASKS_WHO = re.compile(
    r"(너|넌|당신|그쪽)\S*\s*(누구|뭐|이름)|^\s*누구(세요|야|신가요|십니까)|챗봇|로봇|\bwho are you\b", re.IGNORECASE
)
"""Wants to know whom they are talking to."""
BOTH = re.compile(r"둘\s*다|둘다|모두\s*다|각각|\bboth\b", re.IGNORECASE)
"""Says that one sentence asks for two things."""
JOINED = re.compile(r"(?P<one>[가-힣]+?|[A-Za-z]+)(?:이랑|하고|랑|와|과|\s+and)\s+(?P<other>[가-힣]+|[A-Za-z]+)")
"""Two things in one breath."""
ACT_AND_MORE = re.compile(r"(?P<act>취소|반품|교환|환불|변경)하고\s+(?=\S+도\s[^.!?\n]*(?:주세요|부탁|줘))")
"""A wish for an act and for something beside it: "취소하고 쿠폰도 확인해 주세요"."""
THANKS = re.compile(r"감사|고마|고맙|수고|[👍🙏]|\bthank", re.IGNORECASE)

ENDS_WITH_ACT = re.compile(r"(취소|반품|교환|환불|변경|발급|접수|연결)\s*(요|이요|이에요)?\s*[.!]?\s*$")
"""A wish without a verb, as people type it: "주문 취소요"."""
WANTS_TO_TALK = re.compile(
    r"연결|바꿔|통화|얘기|이야기|말하|대화|상담받|상담 받|불러|신청|접수|부탁|주세요|줘|싶|할래|할게|원해"
    r"|(상담원|상담사|직원|담당자|매니저)(요|이요)?\s*[.!]?\s*$|\b(please|want|talk|speak|connect)\b"
)
"""Wants a person, and does not only speak of one."""
DATED = re.compile(
    r"어제|그제|그저께|엊그제|오늘|아까|방금|지난|저번|\d+\s*(일|주|달|개월)\s*전|\d+월\s*\d+일|며칠\s*전"
    r"|\b(yesterday|today|last|ago)\b",
    re.IGNORECASE,
)
"""Means a thing by when it was bought."""
LOOKS_FOR = re.compile(r"있어요|있나요|있을까요|있습니까|파나요|팔아요|추천|좋을까|골라")
"""Asks for a thing without saying what kind of thing it is."""


def sentences(question: str) -> list[str]:
    """The sentences of a message, with the marks that they end with."""
    return [sentence for sentence in re.split(r"(?<=[.!?\n])", question) if sentence.strip()]


def wishes(sentence: str) -> bool:
    """Whether somebody wants something done."""
    said = sentence.lower()
    wished = WISHES.search(said) or POLITE_WISH.search(said) or ENDS_WITH_ACT.search(said)
    return bool(wished) and not asks(sentence) and not REFUSES.search(said)


def asks(sentence: str) -> bool:
    """Whether somebody only wants to know something, or speaks of a case that may come."""
    said = sentence.lower()
    return bool(ASKS.search(said)) and not POLITE_WISH.search(said)
