"""Everything that haru_fsm raises on purpose, in one tree.

    HaruError
    ├── WorkflowError             the table is not one that may run
    │   ├── EndlessWorkflow       a loop that no limit breaks (carries the shortest one)
    │   └── NoTransition          an event came that the table has no row for in this state
    ├── AppError                  the app folder, its states/ or its tools/ cannot be used
    │   └── ToolError             one tool cannot be declared to a model
    ├── SettingsError             a setting, or a message, is not usable as it is
    ├── UnknownCustomer           no such customer
    ├── UnknownConversation       no such conversation in this store
    ├── UnknownCall               no such call in this conversation
    ├── UnknownTicket             no such ticket in this store
    ├── ConversationBusy          a run of this conversation is going on somewhere else, or waits for a person
    ├── DeskUnavailable           the ticket desk could not be reached; the run waits, and `haru resume` tries again
    ├── ModelError                a model could not be set up (what a model answers is never an exception)
    └── StoreError                the store did not do what it was told; nothing half done was left
        ├── ConversationMoved     somebody else appended first; reload and look again
        ├── JournalDamaged        a journal does not agree with its checksums; it is set aside whole
        └── FormatTooNew          written by a newer haru_fsm than this one

Endings that belong to the work of a shop (a limit reached, a model that failed, a tool that raised) are
rows of the table and observations, never exceptions. Foreign errors are translated at the edge where they
come in. `NotDone` is the one exception that tools raise for us: see its docstring.
"""

from __future__ import annotations

from copy import copy


class HaruError(Exception):
    """Root of the tree. The message says what happened, to which conversation, and what to do next."""


def about(conversation_id: str, error: HaruError) -> HaruError:
    """The same error in words that say which conversation it concerns, for whoever sees those of many in a list."""
    if conversation_id in str(error):
        return error
    named = copy(error)  # one and the same may have been raised for several of them
    named.args = (f"Conversation {conversation_id}: {error}", *error.args[1:])
    named.__cause__ = error
    return named


class WorkflowError(HaruError):
    """The table of transitions cannot be used as it is."""


class EndlessWorkflow(WorkflowError):
    """A run of this workflow could go on for ever; `loop` names the states of the shortest way to do so."""

    def __init__(self, message: str, loop: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.loop = loop


class NoTransition(WorkflowError):
    """The table has no row that fits this event in this state."""


class AppError(HaruError):
    """An app folder, or a module in it, cannot be loaded."""


class ToolError(AppError):
    """A function cannot be declared as a tool; the message names the tool, the parameter and the way out."""


class SettingsError(HaruError):
    """A setting or an input is not usable; the message names it."""


class UnknownCustomer(HaruError):
    """The app knows no customer of this number."""


class UnknownConversation(HaruError):
    """The store knows no conversation of this id."""


class UnknownCall(HaruError):
    """The conversation has no such tool call."""


class UnknownTicket(HaruError):
    """The store knows no ticket of this number."""


class ConversationBusy(HaruError):
    """A run of this conversation is still going on, here or in another process."""


class DeskUnavailable(HaruError):
    """The desk did not take the ticket, or did not say so; no number is told before it has."""


class ModelError(HaruError):
    """A model cannot be set up: no key, an unknown kind, a missing extra."""


class StoreError(HaruError):
    """The store could not read or write; whatever was being written is not there in part."""


class ConversationMoved(StoreError):
    """The conversation is no longer where the writer believed it to be: another worker has moved it."""


class JournalDamaged(StoreError):
    """The stored journal of a conversation fails its checksums or cannot be read; nothing of it is used."""


class FormatTooNew(StoreError):
    """The database was written in a format that this version of haru_fsm does not know."""


class NotDone(Exception):
    """Raised by a tool with an effect to say that the effect certainly did not take place, and why.

    Any other exception out of such a tool leaves its outcome *in doubt*, because nobody can know how far
    it came. The reason is told to the model as an observation.
    """
