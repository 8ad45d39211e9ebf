"""How the command ends: what each error means to whoever called it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haru_fsm import errors

if TYPE_CHECKING:
    from haru_fsm.runs import Run

OK = 0
"""An ending was reached: an answer, or a ticket."""
FAILED = 1
USAGE = 2
"""Wrong usage, or an input that cannot be used as it is."""
WAITING = 3
"""A person has to approve a call before the run goes on."""
INTERRUPTED = 130
"""Ctrl-C; the number that shells give to it."""
TERMINATED = 143
"""SIGTERM; the same."""

BAD_INPUT: tuple[type[errors.HaruError], ...] = (
    errors.SettingsError,
    errors.AppError,
    errors.WorkflowError,
    errors.ModelError,
    errors.UnknownCustomer,
    errors.UnknownConversation,
    errors.UnknownCall,
    errors.UnknownTicket,
)
"""What only the caller can mend, by saying it differently or by mending the app."""


def of_error(error: errors.HaruError) -> int:
    """The exit code for an error."""
    return USAGE if isinstance(error, BAD_INPUT) else FAILED


def of_run(run: Run) -> int:
    """The exit code for a run."""
    return OK if run.finished else WAITING if run.waiting else FAILED
