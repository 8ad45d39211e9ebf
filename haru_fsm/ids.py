"""Ids that come from outside: of conversations, messages and customers. What cannot be one is refused at the edge.

Texts may be mended (a lone surrogate becomes U+FFFD); an id may not, for two that were different must stay so. Nothing
else is asked of them: Hangul in any normal form, blanks and control characters are as good as letters.
"""

from __future__ import annotations

from haru_fsm.errors import SettingsError

ID_CHARS = 1_000
"""Characters that an id may have."""


def checked(what: str, value: str) -> str:
    """The id, as it came.

    Raises SettingsError for what is no text, is empty or too long, or what no database could keep.
    """
    if not isinstance(value, str):
        raise SettingsError(f"The {what} is {value!r}, and has to be a text: {str(value)!r}.")
    if not value.strip():
        raise SettingsError(f"The {what} is empty. Give one.")
    if len(value) > ID_CHARS:
        raise SettingsError(f"The {what} has {len(value):,} characters; at most {ID_CHARS:,} are taken.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise SettingsError(f"The {what} is no text ({value!a}): it holds half a character.") from None
    return value
