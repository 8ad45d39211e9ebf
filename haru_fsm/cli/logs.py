"""What libraries log becomes lines of ours. A module of its own, so that `haru --help` needs no logging."""

from __future__ import annotations

import logging

from haru_fsm.cli.debugging import debugging
from haru_fsm.cli.output import complain, tell


class OneLine(logging.Handler):
    """A warning is one line on standard error; its traceback comes only where HARU_DEBUG asks for it."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(f"{record.levelname.lower()}: {record.getMessage()}")
        if record.exc_info and debugging():
            tell(logging.Formatter().formatException(record.exc_info))


def prepare_logs() -> None:
    """From here on nothing that is logged reaches standard error in another form."""
    logging.basicConfig(level=logging.WARNING, handlers=[OneLine()], force=True)
    # What a tool has raised is the model's to deal with; whoever writes the tool wants to see where.
    logging.getLogger("haru_fsm").setLevel(logging.DEBUG if debugging() else logging.NOTSET)
