"""Events of an app's own. A table may speak of facts that the engine has no word for (`parcel_weighed`).

Stores need not know them: a journal keeps every event under its kind, and reads one that it does not know as a plain
`Event` with all its fields. The workflow, which does know, gives it its type back. So looking, exporting and verifying
need no app, and an event that an app has dropped is still there to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import ValidationError

from haru_fsm.conversation import KINDS, Event, Step
from haru_fsm.errors import WorkflowError


def own_kinds(events: Iterable[type[Event]]) -> dict[str, type[Event]]:
    """The events among these that are an app's own, by kind.

    Raises WorkflowError for one without a kind of its own, and for two that share one: a journal could not tell them
    apart.
    """
    own: dict[str, type[Event]] = {}
    for event in dict.fromkeys(events):
        kind = event.model_fields["kind"].default
        name = event.__qualname__
        if not isinstance(kind, str) or not kind:
            raise WorkflowError(f'The event {name} has no kind. Give it one: kind: Literal["it_happened"] = ...')
        other = KINDS.get(kind, own.get(kind, event))
        if other is not event:
            raise WorkflowError(f"The events {name} and {other.__qualname__} share the kind {kind!r}. Rename one.")
        if kind not in KINDS:
            own[kind] = event
    return own


def typed(steps: Sequence[Step], own: Mapping[str, type[Event]]) -> tuple[Step, ...]:
    """The steps with the app's own events as what they are. One that no longer fits its type stays a plain `Event`."""
    if all(type(step.event) is not Event for step in steps):
        return tuple(steps)
    return tuple(_typed(step, own) for step in steps)


def _typed(step: Step, own: Mapping[str, type[Event]]) -> Step:
    known = own.get(step.event.kind)
    if type(step.event) is not Event or known is None:
        return step
    try:
        return step._replace(event=known.model_validate_json(step.event.model_dump_json()))
    except ValidationError:
        return step
