"""Ids: of conversations, messages and customers. Those from outside are refused at the edge where they cannot be one.

Texts may be mended (a lone surrogate becomes U+FFFD); an id may not, for two that were different must stay so. Nothing
else is asked of them: Hangul in any normal form, blanks and control characters are as good as letters.
"""

from __future__ import annotations

import hashlib
import secrets

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


def new_conversation_id() -> str:
    """An id that no conversation has yet."""
    return f"c-{secrets.token_hex(5)}"


def conversation_id_for(customer_id: str, message_id: str, salt: int = 0) -> str:
    """The id of the conversation that this first message of a customer begins: the same whenever it comes again. `salt`
    where one is taken, for among a million of them two are likely to be the same."""
    told = f"{customer_id}\x1f{message_id}" + (f"\x1f{salt}" if salt else "")
    return "c-" + hashlib.blake2b(told.encode(), digest_size=5).hexdigest()
