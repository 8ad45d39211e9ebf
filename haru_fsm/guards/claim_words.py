"""The words in which an answer claims a ticket or a hand-over, in Korean and English; those of deeds are in `deeds.py`.

What will be, may be or was not done is none of these, and no question is, nor what somebody is quoted with. Only a
hand-over is claimed by its promise too: once the answer is given nobody is left to keep it, unless it waits for
something that the customer was asked for before.
"""

from __future__ import annotations

import re

IDENTIFIER = re.compile(r"(?<![\w-])[A-Za-z]{1,6}-?\d[\w-]*", re.ASCII)
_NO_EXAMPLE = r"(?:(?!예\s?[:：)]|예를|\b(?:for example|such as|like)\b)[^.\n])"
NUMBERED = re.compile(
    rf"(?:티켓|접수\s*번호|문의\s*번호|상담\s*번호|\bticket){_NO_EXAMPLE}{{0,30}}?(?P<id>(?<![\w-])[A-Za-z]{{1,6}}-?\d[\w-]*)"
    r"|(?:(?:티켓|접수)\s*번호[는은가]?|\b(?:ticket|case)\s*(?:number|no\.?|id|#)(?:\s+is)?)"
    r"\s*[:：]?\s*#?(?P<number>\d[\d-]{2,}\d)",
    re.IGNORECASE | re.ASCII,
)
"""A ticket with its number. One of digits alone is told from other figures only right behind the words for it."""
_CONDITIONAL = (
    r"(?:(?<!기다려 주시)(?<!기다려주시)면|경우|필요\s?시|[실할] 때|주시는 대로"
    r"|\b(?:if|when|once|after|whether|unless|would|shall|should you)\b"
    r"|\b(?:tell|give|send|let) (?:me|us)\b|\b(?:say so|please (?:provide|share|confirm|reply))\b)"
)
_SENTENCE = rf"(?<![^.!?\n])(?![^.!?\n]*{_CONDITIONAL})[^.!?\n]{{0,80}}?"
"""The beginning of a sentence that makes no condition."""
FILED = re.compile(
    r"(?:티켓|상담\s*접수)[^.\n]{0,20}(?:접수|생성|발급|등록|완료)[^.\n]{0,6}"
    r"(?:(?:했|하였|됐|되었)(?!는지|던|다[고는면]|을|으면|습니다[라고만]|습니까)|완료(?=\s*(?:[.!)\n]|\Z)))"
    r"|문의(?:\s?(?:내용|사항))?[이가은는을를]?\s?(?:정상적?으?로?\s?|잘\s)?(?:접수|등록)[이가을를]?\s?(?:완료)?\s?(?:했|하였|됐|되었|해\s?드렸)습니다(?![라고면])"
    rf"|{_SENTENCE}(?:\bticket (?:has been|was|is now) (?:created|opened|filed)"
    r"|(?:created|opened|filed) a (?:support )?ticket)",
    re.IGNORECASE,
)
"""That a ticket was filed."""
_DONE = r"(?:했|하였|됐|되었|해\s?(?:드렸|두었|놓았))(?:습니다|어요)(?!라|고|면|만|\s*\?)"
_PERSON = r"(?:상담[원사]|(?:상담|담당)\s?(?:직원|부서|팀)|(?<!배송 )(?<!택배 )담당자|고객\s?센터|관련\s?부서)"
_STAFF = r"(?:an?|our|the|your) [^.!?\n]{0,25}?(?:agent|human|team|specialist|support|representative|colleague)\b"
HANDED_OVER = re.compile(
    rf"{_SENTENCE}(?:"
    rf"{_PERSON}[^.!?\n]{{0,15}}?(?:전달|연결|인계|이관|접수|배정)[이가을를]?"
    rf"(?:\s?완료)?\s?(?:{_DONE}|(?P<promised>하겠습니다|해\s?드리겠습니다|(?:해\s?드)?[할릴]게요))"
    r"|\b(?:I(?:'ve| have|(?P<will>'ll| will))|you are being"
    r"|your (?!parcel|package|shipment|item)[^.!?\n]{0,30}(?:has (?:now |just )?been|is being))(?: just| now)? "
    r"(?:escalated?|forward(?:ed)?|transfer(?:red)?|connect(?:ed)?|hand(?:ed)?|pass(?:ed)?)\b[^.!?\n]{0,30}?"
    rf"\bto {_STAFF}"
    r")(?![^.!\n]*\?)",
    re.IGNORECASE,
)
"""That a person has the case now, or is about to."""
_ASKED = re.compile(
    r"(?:알려|말씀해|보내|남겨|적어|입력해|골라)\s?주(?:세요|시겠|십시오|실)"
    r"|\bplease (?:tell|give|send|share|provide|confirm)\b|\bcould you\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"[\"'“‘「][^\"'“”‘’「」\n]{1,100}[\"'”’」](?=\s?(?:이?라[고는며]|란|같은))"
    r"|\b(?:said|says|saying|reads?)\b[^.!?\n\"“]{0,20}[\"“][^\"“”\n]{1,100}[\"”]",
    re.IGNORECASE,
)
"""What somebody says, and not the answer."""


def unquoted(text: str) -> str:
    """The text without what it quotes."""
    return _QUOTED.sub('""', text)


def is_hand_over(text: str, *, told: bool) -> bool:
    """Whether a text claims a hand-over. `told`: somebody has told of one, which keeps no promise of another."""
    claims = HANDED_OVER.finditer(text)
    return any(
        not _ASKED.search(text, 0, claim.end()) if claim["promised"] or claim["will"] else not told for claim in claims
    )
