"""Keys are taken out of whatever is kept or shown: incidents, logs, errors, recordings."""

from __future__ import annotations

import re

GONE = "[key]"

_LOOKS_LIKE_A_KEY = re.compile(
    r"AIza[0-9A-Za-z_-]{30,}"  # Google
    r"|\bAQ\.[0-9A-Za-z_-]{20,}"  # Google, the newer kind
    r"|\bya29\.[0-9A-Za-z_.-]{20,}"  # Google, a token
    r"|\bsk-[0-9A-Za-z_-]{16,}"  # OpenAI and gateways that speak like it
    r"|(?<=Bearer )[0-9A-Za-z_.~+/-]{8,}=*"
    r"|(?<=[?&]key=)[^&\s\"']+"
)


def scrub(text: str, *keys: str | None) -> str:
    """The text without these keys, and without anything that looks like one."""
    for key in keys:
        if key and len(key) >= 4:
            text = text.replace(key, GONE)
    return _LOOKS_LIKE_A_KEY.sub(GONE, text)
