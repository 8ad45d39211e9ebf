"""The vocabulary of the offline planner: what customers of any shop call things, in Korean and English.

A concept is a thing that has several names; the same concept is heard in a question ("택배 어디쯤 왔나요"), in a
tool's description ("where the parcel is now") and in the label of a field. No product, customer or number is in
here, and no tool either.

Korean is compared letter by letter (in decomposed form), so that an ending that grows onto a stem does not hide it,
and longer names win over shorter ones inside them: 택배사 is a carrier, not a parcel.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache

CONCEPTS: Mapping[str, str] = {
    "order": "주문, 주문번호, 구매, 샀어, 샀던, 산 거, order, purchase",
    "delivery": "배송, 배달, deliver, delivery, ship, shipping",
    "parcel": "택배, 소포, parcel, package",
    "carrier": "택배사, 배송사, 배송업체, carrier, courier",
    "tracking": "송장, 송장번호, 운송장, 운송장번호, tracking number",
    "location": "어디, 위치, 추적, 배송 조회, 배송 상태, 배송 상황, 배송 확인, 배송 알려, 택배 조회, 택배 알려,"
    " where, location, track",
    "arrival": "언제 와, 언제 오, 언제 도착, 언제 받, 언제쯤, 도착, 안 와요, 안 오, 배송 지연, 늦어, 늦네, 늦는, 지연,"
    " when it will arrive, arrive, arrival",
    "dispatch": "발송, 출고, 출발, 언제 보내, dispatch, shipped",
    "address": "주소, 배송지, 받는 곳, address",
    "cancel": "취소, cancel, cancellation",
    "return": "반품, 돌려보내, return, send back",
    "exchange": "교환, exchange",
    "refund": "환불, 돈 언제, refund, money back",
    "coupon": "쿠폰, 할인권, coupon, voucher",
    "points": "포인트, 적립금, point",
    "apology": "사과, 보상, apology, compensation",
    "person": "상담원, 상담사, 상담 직원, 상담 연결, 상담 신청, 상담 받, 담당자, 직원, 매니저, 문의 접수, 상담 티켓,"
    " 사람이랑, 사람과, 사람하고, 사람한테, 사람에게, 사람 연결, 사람 좀,"
    " person, human, agent, representative, ticket",
    "policy": "정책, 규정, 기준, 방법, 어떻게, 어디서, 어디에서, 가능, 되나요, 될까요, 됩니까, 며칠, 기간, 할 수 있,"
    " policy, policies, rule, how do i",
    "fee": "배송비, 택배비, 배송료, 무료배송, 수수료, 추가 비용, fee",
    "product": "상품, 상품명, 제품, 물건, product",
    "shopping": "추천, 찾고 있, 찾아 주, 파나요, 파는, 팔아요, 재고, 품절, 가격, 얼마예요, 얼마인가요,"
    " in stock, price, sells",
    "status": "상태, 진행, 어떻게 되고, 어떻게 됐, status",
    "list": "목록, 내역, 전부, 모두, 모든, 전체, list, all",
    "mine": "제 주문, 내 주문, 저의, 제가, my",
    "change": "변경, 바꾸, 바꿔, 바뀌, 수정, change",
    "gift": "선물 포장, 선물하기, 포장, gift wrapping, wrapping",
    "membership": "등급, 회원, 탈퇴, 혜택, membership",
    "receipt": "영수증, 세금계산서, receipt, invoice",
    "total": "결제 금액, 주문 금액, 총 금액, total",
    "payment": "결제, 입금, 할부, 무이자, payment",
    "hours": "운영 시간, 영업 시간, 상담 시간, 몇 시, 고객센터, opening hours",
    "lost": "분실, 사라졌, 없어졌, 못 받, 안 왔, 오배송, 잘못된 상품, 잘못된 물건, 잘못 왔, lost, wrong item",
    "defect": "불량, 고장, 파손, 깨지, 깨져, 하자, defect, defective, damage, damaged, broken",
    "state: paid": "결제 완료, paid",
    "state: preparing": "상품 준비 중, 준비 중, preparing",
    "state: shipping": "배송 중, 배송되고, 배달 중, 오고 있, 오는 중, 가는 중, in transit, on its way, on the way",
    "state: delivered": "배송 완료, 도착한, 도착했, 받은, delivered",
    "state: cancelled": "취소된, 취소한, 취소됐, 취소되었, 취소 내역, 취소했, cancelled, canceled",
    "state: returned": "반품된, 반품한, 반품됐, 반품되었, 반품 내역, 반품했, returned",
}
"""Concept -> its names. A blank in a Korean name may be written or not; an English name is a whole word."""

POLICY, PERSON = "policy", "person"
GENERAL = frozenset({"order", "delivery", "parcel", "product", "status", "list", "mine"})
"""Concepts that nearly every question of a customer speaks of; they say little about what is wanted."""
FIELDS = frozenset({"carrier", "tracking", "arrival", "dispatch", "address", "location", "refund", "total"})
"""Concepts that are a matter of one thing's details."""
ACTS = frozenset({"cancel", "return", "exchange", "change", "refund"})
"""Concepts of things that are done to orders."""
STATE = "state: "
"""How the names of concepts begin that say which state something is in."""

EVERYDAY = re.compile(
    r"about|after|also|been|before|between|both|could|does|done|each|else|ever|every|find|from|gets|gives?|goes|good|have|"
    r"here|hers|into|just|kind|know|like|long|look|made|make|many|more|most|much|need|only|other|over|same|should|some|"
    r"such|take|than|thanks?|that|their|them|then|there|these|they|things?|this|those|time|today|until|very|want|was|"
    r"well|were|what|when|where|which|while|will|with|without|would|yours?"
)
"""English words that any two texts may share."""

READING_VERB = re.compile(
    r"get|search|list|find|show|track|look|lookup|check|read|fetch|query|view|browse|describe|count"
)
"""Verbs in names of tools that only look. Whatever else a tool is called, it is taken to act."""
READS = re.compile(
    r"(look|lists?|search|find|show|ask|read|returns|gets?|check|fetch)\b|[^.\n]*(조회|검색|확인)(합니다|한다|해요|함)?\s*\.?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
"""How the description of a tool that only looks begins, or ends in Korean, where its name has no verb."""

NEUTRAL = re.compile(r"기타|보통|일반|others?|misc|etc|normal|medium|general|default", re.IGNORECASE)
"""Values of an enumeration that commit nobody to anything."""

UNCOMMITTED: Mapping[str, str] = {"category": "기타", "type": "기타", "urgency": "보통", "priority": "보통"}
"""What a parameter of this name gets where any text will do and none was said."""

SAME_AS: Mapping[str, str] = {
    "변심": "마음에 안, 맘에 안, 필요 없, 필요없, 생각이 바뀌, 마음이 바뀌, changed my mind",
    "불량": "고장, 작동, 안 켜, 안켜, 하자, 흠집, defect, broken",
    "오배송": "다른 상품, 다른 게, 다른 걸, 다른 물건, 잘못 왔, 잘못 온, 잘못 배송, wrong item",
    "파손": "깨져, 깨졌, 깨진, 부서, 부러, 찌그러, damaged",
    "긴급": "급해, 급합, 지금 당장, 빨리, urgent",
}
"""Word of an enumeration's value -> how customers say it."""

IMPLIED_STATES: Mapping[str, tuple[frozenset[str], ...]] = {
    "refund": (frozenset({"cancelled", "returned"}),),
    "return": (frozenset({"delivered"}),),
    "cancel": (frozenset({"paid", "preparing"}),),
    "address": (frozenset({"paid", "preparing"}),),
    "location": (frozenset({"shipping"}), frozenset({"paid", "preparing"})),
    "parcel": (frozenset({"shipping"}), frozenset({"paid", "preparing"})),
    "arrival": (frozenset({"shipping"}), frozenset({"paid", "preparing"})),
    "dispatch": (frozenset({"paid", "preparing"}), frozenset({"shipping"})),
    "tracking": (frozenset({"shipping"}),),
    "carrier": (frozenset({"shipping"}),),
}
"""Which records are meant by a concept where the question itself does not say; the first tier that has any."""

LABELS: Mapping[str, str] = {
    "order_id": "주문번호",
    "product_name": "상품명",
    "name": "이름",
    "status": "상태",
    "carrier": "택배사",
    "tracking_number": "송장번호",
    "ordered_on": "주문일",
    "shipped_on": "발송일",
    "expected_on": "도착 예정일",
    "delivered_on": "도착일",
    "location": "현재 위치",
    "scans": "최근 위치 기록",
    "address": "배송지",
    "items": "상품",
    "quantity": "수량",
    "total_won": "결제 금액",
    "paid_with": "결제 수단",
    "note": "안내",
    "refund_status": "환불 상태",
    "refund_won": "환불 금액",
    "refund_reason": "사유",
    "refund_requested_on": "접수일",
    "refund_expected_on": "환불 예정일",
    "return_reason": "반품 사유",
    "return_fee_won": "반품 배송비",
    "reason": "사유",
    "amount": "금액",
    "points_won": "포인트",
    "coupons": "쿠폰",
    "code": "쿠폰 번호",
    "discount_won": "할인 금액",
    "discount_percent": "할인율",
    "minimum_won": "최소 주문 금액",
    "expires_on": "유효 기간",
    "ticket_id": "접수 번호",
    "category": "분류",
    "urgency": "긴급도",
    "price_won": "가격",
    "price": "가격",
    "date": "날짜",
    "time": "시간",
    "kind": "종류",
    "type": "종류",
    "total": "합계",
    "phone": "전화번호",
    "email": "이메일",
    "description": "설명",
    "rating": "평점",
    "availability": "재고",
    "eta": "도착 예정",
    "item": "상품명",
    "query": "찾으시는 상품",
    "question": "질문",
}
"""What customers call a field of a result; a field that is not in here is called by its own name."""


def folded(text: str) -> str:
    """A text as it is compared: small, Hangul in single letters."""
    return unicodedata.normalize("NFD", text).lower()


@lru_cache(maxsize=1024)
def heard(text: str) -> frozenset[str]:
    """The concepts that a text speaks of. A state also speaks of the order that is in it."""
    found = {_NAMES[match.lastgroup or ""] for match in _ANY_NAME.finditer(folded(text))}
    if any(concept.startswith(STATE) for concept in found):
        found.add("order")
    return frozenset(found)


def states(text: str) -> frozenset[str]:
    """The states that a text speaks of, such as "shipping"."""
    return frozenset(concept.removeprefix(STATE) for concept in heard(text) if concept.startswith(STATE))


def state_named(value: str) -> frozenset[str]:
    """The state that a field's value is the name of: there, the bare word for an act means that it was done."""
    if len(value) > _LONGEST_STATE:
        return frozenset()
    return states(value) or frozenset(_DONE[concept] for concept in heard(value) if concept in _DONE)


def says(question: str, value: str) -> bool:
    """Whether a question contains a value: as it is, without its blanks, or in other words for the same."""
    plain, wanted = _despaced(question), _despaced(value)
    if len(wanted) > 1 and wanted in plain:
        return True
    return any(
        word in value and any(_despaced(other) in plain for other in others.split(", "))
        for word, others in SAME_AS.items()
    )


def in_korean(text: str) -> str:
    """A text that has no Korean, with the Korean names of what it speaks of: what is searched may know these only."""
    if _HANGUL.search(text):
        return text
    names = (_korean_name(concept) for concept in CONCEPTS if concept in heard(text))
    return " ".join([text, *filter(None, names)])


def _korean_name(concept: str) -> str:
    return next((name.strip() for name in CONCEPTS[concept].split(",") if _HANGUL.search(name)), "")


def label(key: str) -> str:
    """What customers call a field."""
    return LABELS.get(key, key.replace("_", " "))


def concepts_of_field(key: str) -> frozenset[str]:
    """The concepts that a field of a result speaks of, by its name and by what customers call it."""
    return heard(f"{label(key)} {key.replace('_', ' ')}")


def words_of_name(name: str) -> list[str]:
    """The words that an identifier is made of: order_id and orderId are both order and id."""
    return [word.lower() for word in re.split(r"[\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)) if word]


def singular(word: str) -> str:
    """An English noun without its plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def with_object_particle(noun: str) -> str:
    """A Korean noun as an object: 을 after a consonant, 를 after a vowel."""
    last = noun.rstrip(")")[-1:] or "것"
    closed = "가" <= last <= "힣" and (ord(last) - ord("가")) % 28
    return noun + ("을" if closed else "를")


_HANGUL = re.compile("[가-힣]")
_DONE = {"cancel": "cancelled", "return": "returned"}
_LONGEST_STATE = 12


def _despaced(text: str) -> str:
    return "".join(folded(text).split())


def _patterns() -> Iterator[tuple[int, str, str]]:
    for concept, names in CONCEPTS.items():
        for name in (part.strip() for part in names.split(",")):
            pattern = r"\s*".join(re.escape(word) for word in folded(name).split())
            yield len(name), concept, rf"\b{pattern}s?\b" if name.isascii() else pattern


_BY_LENGTH = sorted(_patterns(), key=lambda each: -each[0])
_NAMES: Mapping[str, str] = {f"n{number}": concept for number, (_, concept, _) in enumerate(_BY_LENGTH)}
_ANY_NAME = re.compile("|".join(f"(?P<n{number}>{pattern})" for number, (_, _, pattern) in enumerate(_BY_LENGTH)))
