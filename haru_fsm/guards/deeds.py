"""That something was done about an order: as answers say it, and whether anybody but the model has told of it; also of
a filing or a hand-over, whose claims are in `claim_words.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from haru_fsm.conversation import HistoryAdopted, ResultStatus, Step, TicketClosed, executed

CLAIM = re.compile(
    r"(?:취소|환불|교환|반품|재발송|적립|발급|삭제|해지|"
    r"(?:주문(?!\s?(?:방법|절차|마감|시간|화면|페이지|취소))|배송지|(?<!센터 )(?<!반품 )(?<!매장 )주소|연락처|수령인)"
    r"[^.\n]{0,10}변경)[이가을를]?"
    r"(?:\s?(?:처리|완료|접수|신청|요청|등록)[이가를을]?){0,3}\s?"
    r"(?:했|하였|됐|되었|해\s?(?:드렸|두었|놓았))(?:습니다|어요)(?!라|고|면|만|\s*\?)"
    r"|(?<![^.!?\n])(?![ \t]*(?:if|when|once|whether|after|unless)\b"
    r"|[^.!?\n]*\b(?:said|told)(?: you)?(?: that)? your\b)[^.!?\n]{0,60}?"
    r"\b(?:I(?:'ve| have) |your [^.!?\n]{0,30}has (?:now )?been )(?:just |now |successfully )?(?:cancell?ed|refunded)\b"
    r"(?![^.!\n]*\?)",
    re.IGNORECASE,
)
"""That something was done. What will be, may be or was not done is none, and no question is."""

KINDS = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        "취소|환불|반품|cancel|refund|return|void|revers|payback",
        "교환|재발송|재배송|exchang|replac|resen[dt]|reship",
        "적립|발급|쿠폰|포인트|마일리지|credit|coupon|point|issue|reward|earn|balance",
        "변경|수정|chang|updat|modif|edit",
        "삭제|해지|탈퇴|delet|remov|terminat|clos|withdr|unsubscri",
    )
)
"""Words for deeds of one kind. A shop's tools may call a refund a return, and its states are often English."""
FILINGS = re.compile(
    r'\A\S*(?:ticket|inquir|enquir|case)|"\w*(?:ticket|inquir|enquir)\w*":|티켓|문의\s?(?:내역|상태|번호|접수)|접수\s?(?:번호|완료)',
    re.IGNORECASE,
)
HAND_OVERS = re.compile("인계|이관|배정|escalat|assign", re.IGNORECASE)
"""What a tool tells of filings and hand-overs that were. A policy that speaks of how to ask is none of these."""


def is_told(deed: str, steps: Sequence[Step]) -> bool:
    """Whether an answer may go by something in this journal: an effect that was done, whichever; a reading that has to
    do with this kind of deed; or the words of a person or of another loop. What the customer writes is none of these.
    """
    if any(isinstance(step.event, TicketClosed | HistoryAdopted) for step in steps):
        return True
    done = [result for _, _, result in executed(steps) if result.status is ResultStatus.DONE]
    return any(result.effect for result in done) or any(is_read(kind, steps) for kind in KINDS if kind.search(deed))


def is_read(kind: re.Pattern[str], steps: Sequence[Step]) -> bool:
    """Whether a reading has to do with this."""
    return any(
        kind.search(f"{call.name} {json.dumps(result.response, ensure_ascii=False)}")
        for _, call, result in executed(steps)
        if result.status is ResultStatus.DONE and not result.effect
    )
