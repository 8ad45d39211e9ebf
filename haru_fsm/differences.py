"""How a journaled step differs from the same step made now, and how that is told. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from haru_fsm.conversation import Event, Frozen, Step, TicketOpened

VALUE_CHARS = 600
"""Characters of a value that a difference shows."""


class Difference(Frozen):
    """The first step that came out otherwise, and how: what the journal says, and what happens now.

    `what`: "way" (another state, guard or answer), "event" (decided in other words), "tool" (it is gone, refuses these
    arguments, or acts where it did not), "contents" (the API would refuse what the model is to read).
    """

    seq: int
    kind: str
    what: str
    was: str
    now: str


class Otherwise(Exception):
    """What happens now is not what the journal says."""

    def __init__(self, what: str, was: str, now: str) -> None:
        super().__init__(now)
        self.what, self.was, self.now = what, was, now


def compare(was: Step, now: Step) -> None:
    """Raise Otherwise where a journaled step and the same one made now differ in their way or in what they say.

    Not compared: the words in which a trip says why, and which guards were only asked.
    """
    if _place(was) != _place(now):
        raise Otherwise("way", way(was), way(now))
    changed = list(_changed("", _facts(was.event), _facts(now.event)))
    if changed:
        raise Otherwise(
            "event",
            "\n".join(f"{name}: {_shown(before)}" for name, before, _ in changed),
            "\n".join(f"{name}: {_shown(after)}" for name, _, after in changed),
        )


def _place(step: Step) -> tuple[Any, ...]:
    """Where a step led: what makes it another way if it differs."""
    trip = step.trip
    return (step.state, step.rests, step.answer, trip and (trip.guard, trip.figure, trip.limit))


def way(step: Step) -> str:
    """Where a step led, and which guard tripped, on one line."""
    told = f"→ {step.state}{' (rests)' if step.rests else ''}{f', {step.answer}' if step.answer else ''}"
    return told if step.trip is None else f"{told}, {step.trip.guard}: {step.trip.because}"


def _facts(event: Event) -> dict[str, Any]:
    """What an event says, without when that was."""
    facts = event.model_dump(mode="json", exclude={"at", "took_ms"})
    if isinstance(event, TicketOpened):
        del facts["ticket"]["created_at"]
    return facts


def _changed(name: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """The smallest parts that differ, by their names."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in {**was, **now}:
            yield from _changed(f"{name}.{key}" if name else str(key), was.get(key), now.get(key))
    elif was != now:
        yield name, was, now


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_CHARS else text[: VALUE_CHARS - 1] + "…"
