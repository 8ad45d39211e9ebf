"""The words in which an answer claims a ticket or a hand-over, in Korean and English; those of deeds are in `deeds.py`.

What will be, may be or was not done is none of these, and no question is. Only a hand-over is claimed by its promise
too: once the answer is given nobody is left to keep it.
"""

from __future__ import annotations

import re

IDENTIFIER = re.compile(r"(?<![\w-])[A-Za-z]{1,6}-?\d[\w-]*", re.ASCII)
NUMBERED = re.compile(
    r"(?:티켓|접수\s*번호|문의\s*번호|상담\s*번호|\bticket)[^.\n]{0,30}?(?P<id>(?<![\w-])[A-Za-z]{1,6}-?\d[\w-]*)"
    r"|(?:(?:티켓|접수)\s*번호[는은가]?|\b(?:ticket|case)\s*(?:number|no\.?|id|#)(?:\s+is)?)"
    r"\s*[:：]?\s*#?(?P<number>\d[\d-]{2,}\d)",
    re.IGNORECASE | re.ASCII,
)
"""A ticket with its number. One of digits alone is told from other figures only right behind the words for it."""
FILED = re.compile(
    r"(?:티켓|상담\s*접수)[^.\n]{0,20}(?:접수|생성|발급|등록|완료)[^.\n]{0,6}(?:했|하였|됐|되었|완료)"
    r"|문의(?:\s?(?:내용|사항))?[이가은는을를]?\s?(?:접수|등록)[이가을를]?\s?(?:완료)?\s?(?:했|하였|됐|되었|해\s?드렸)습니다"
    r"|\bticket (?:has been|was|is now) (?:created|opened|filed)|(?:created|opened|filed) a (?:support )?ticket",
    re.IGNORECASE,
)
_DONE = r"(?:했|하였|됐|되었|해\s?(?:드렸|두었|놓았))(?:습니다|어요)(?!라|고|면|만|\s*\?)"
_PERSON = r"(?:상담[원사]|(?:상담|담당)\s?(?:직원|부서|팀)|담당자|고객\s?센터|관련\s?부서)"
_CONDITIONAL = r"(?:(?<!기다려 주시)(?<!기다려주시)면|경우|필요\s?시|\b(?:if|when|once|whether|unless|would|shall)\b)"
_STAFF = r"(?:an?|our|the|your) [^.!?\n]{0,25}?(?:agent|human|team|specialist|support|representative|colleague)\b"
HANDED_OVER = re.compile(
    rf"(?<![^.!?\n])(?![^.!?\n]*{_CONDITIONAL})[^.!?\n]{{0,80}}?(?:"
    rf"{_PERSON}[^.!?\n]{{0,15}}?(?:전달|연결|인계|이관|접수|배정)[이가을를]?"
    rf"(?:\s?완료)?\s?(?:{_DONE}|하겠습니다|해\s?드리겠습니다|(?:해\s?드)?[할릴]게요)"
    r"|\b(?:I(?:'ve| have|'ll| will)|your [^.!?\n]{0,30}(?:has been|is being)|you are being)(?: just| now)? "
    r"(?:escalated?|forward(?:ed)?|transfer(?:red)?|connect(?:ed)?|hand(?:ed)?|pass(?:ed)?)\b[^.!?\n]{0,30}?"
    rf"\bto {_STAFF}"
    r")(?![^.!\n]*\?)",
    re.IGNORECASE,
)
"""That a person has the case now, or is about to."""
