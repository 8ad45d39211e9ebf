"""The answer as it is being written, told to somebody who watches.

What a watcher has heard is never taken back by another attempt: once an attempt has spoken and then failed, the later
ones are silent, and the outcome itself says what holds. So a watcher compares: where what was heard is not how the
answer begins, the answer is to be shown whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from haru_fsm.json_safe import safe_text
from haru_fsm.models.leaks import certain

log = logging.getLogger(__name__)


class Speech:
    """One attempt's text, passed on as far as it will surely be shown; leaked thoughts are held back."""

    def __init__(self, tell: Callable[[str], None] | None) -> None:
        self._tell = tell
        self._written = ""
        self._told = ""
        self._over = tell is None

    @property
    def listening(self) -> bool:
        """Whether anybody would hear the next piece: it is worth streaming for."""
        return not self._over

    def hear(self, piece: str) -> None:
        """The model has written this much more."""
        if self.listening and piece:
            self._written += safe_text(piece)
            self._say(certain(self._written.lstrip()))

    def attempt_failed(self) -> None:
        """What was written came to nothing; if any of it was heard, nothing more will be."""
        self._over = self._over or bool(self._told)
        self._written = ""

    def attempt_succeeded(self, shown: str) -> None:
        """The answer is complete, and this is what is shown of it: the rest is told, if it follows on what was."""
        if self.listening:
            self._say(shown.lstrip())
        self._over = True

    def _say(self, text: str) -> None:
        if self._tell is None or not text.startswith(self._told) or len(text) == len(self._told):
            return
        piece, self._told = text[len(self._told) :], text
        try:
            self._tell(piece)
        except Exception:
            # A watcher that fails must not cost the customer the answer.
            log.exception("whoever watches the answer being written has raised; nothing more is told")
            self._over = True
