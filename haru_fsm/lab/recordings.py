"""Recorded conversations as journals, whoever recorded them. A recording is made into events once and judged often."""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from haru_fsm.conversation import (
    JSON,
    Event,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ObservationAppended,
    ResultStatus,
    Step,
    TicketClosed,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
    Usage,
)
from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words
from haru_fsm.guards.folds import Folds, Memos
from haru_fsm.json_safe import json_safe


@dataclass(frozen=True)
class Turn:
    """A reply with calls, and what they brought: the journal's lines of one step."""

    asked: Step
    brought: tuple[Step, ...]

    @cached_property
    def run(self) -> tuple[Step, ...]:
        """Its lines where the calls are run, as it was recorded."""
        return (self.asked, *self.brought)

    @cached_property
    def refused(self) -> tuple[Step, ...]:
        """Its lines where a rule refuses the calls."""
        assert isinstance(self.asked.event, ToolsRequested)
        refusals = dict.fromkeys(range(len(self.asked.event.calls)), "")
        event = ObservationAppended(refusals=refusals)
        return (self.asked, self.asked._replace(event=event, asked=()))

    @property
    def chars(self) -> int:
        """Characters that the model wrote and read in this turn."""
        read = (
            str(r.response)
            for step in self.brought
            if isinstance(step.event, ToolsExecuted)
            for r in step.event.results
        )
        assert isinstance(self.asked.event, ToolsRequested)
        return len(str(self.asked.event.content)) + sum(map(len, read))


@dataclass(frozen=True)
class Recording:
    """One conversation. `success` is what whoever recorded it said of it, or None; `facts` are the other labels.

    Its calls are made comparable at once, and not when the first rule looks at them.
    """

    steps: tuple[Step, ...]
    success: bool | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for step in self.steps:
            if isinstance(step.event, ToolsRequested):
                _ = step.event.meant

    @cached_property
    def runs(self) -> tuple[tuple[Turn, ...], ...]:
        """The turns of each run: what lies between two messages of the customer."""
        runs: dict[int, list[tuple[Step, list[Step]]]] = {}
        for step in self.steps:
            turns = runs.setdefault(step.run, [])
            kind = type(step.event)
            if kind is ToolsRequested:
                turns.append((step, []))
            elif turns and (kind is ToolsExecuted or kind is ObservationAppended):
                turns[-1][1].append(step)
        return tuple(tuple(Turn(asked, tuple(brought)) for asked, brought in turns) for turns in runs.values())

    @property
    def turns(self) -> int:
        """Replies with calls, in all runs."""
        return sum(map(len, self.runs))

    def folded(self, folds: Folds) -> tuple[tuple[Memos, ...], ...]:
        """The memos before each turn of each run, as it was recorded. Folded once for all tables that fold alike."""
        known = self._folded.get(folds.keys)
        if known is None:
            known = self._folded[folds.keys] = tuple(self._fold(folds))
        return known

    @cached_property
    def _folded(self) -> dict[Hashable, tuple[tuple[Memos, ...], ...]]:
        return {}

    def _fold(self, folds: Folds) -> Iterator[tuple[Memos, ...]]:
        memos = folds.initial()
        for turns in self.runs:
            found = [folds.begun(memos)]
            found.extend(memos := folds.along(found[-1], turn.run) for turn in turns)
            yield tuple(found[:-1])


def from_steps(steps: Sequence[Step]) -> Recording:
    """A conversation of our own. It succeeded where its last run ended in an answer; a ticket is no success."""
    ended = bool(steps) and steps[-1].rests
    success = isinstance(steps[-1].event, ModelAnswered | TicketClosed) if ended else None
    return Recording(tuple(step._replace(asked=(), trip=None, answer=None) for step in steps), success)


# --------------------------------------------------------------------------- JSON Lines


def from_json_lines(path: Path) -> Iterator[Recording]:
    """The recordings of a file, one a line, gzip or not: `{turns: [{role, text, thought, calls, responses, usage}]}`.

    Roles are user, model and tool; a tool turn answers the calls of the model turn before it by position. All other
    fields are labels; `success` says how it ended. Raises SettingsError for a file or a line that is no such thing.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _recording(line, f"{path}, line {number}")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read as JSON Lines: {in_words(error)}") from error


def _lacking(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else in_words(error)


def _recording(line: str, where: str) -> Recording:
    try:
        told = json.loads(line)
        turns = told.pop("turns")
        events = [event for turn in turns for event in _events(turn)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"{where} is no recording: {_lacking(error)}. It needs turns, each with a role (user, model, tool). "
            'Conversations of an app are read from its database: database = "sqlite:///memory_store/haru.db".'
        ) from error
    success = told.pop("success", None)
    return Recording(tuple(in_order(events)), success if isinstance(success, bool) else None, told)


def _events(turn: JSON) -> Iterator[Event]:
    match turn["role"]:
        case "user":
            yield MessageReceived(text=str(turn.get("text") or ""))
        case "model":
            yield _said(turn)
        case "tool":
            yield ToolsExecuted(results=tuple(_results(turn.get("responses") or ())))
            yield ObservationAppended()
        case role:
            raise ValueError(f"unknown role {role!r}")


def _said(turn: JSON) -> ModelEvent:
    text = "\n".join(filter(None, [turn.get("thought"), turn.get("text")]))
    parts: list[JSON] = [{"text": text}] if text else []
    wanted = turn.get("calls") or ()
    for call in wanted:
        args = call.get("args")
        args = args if isinstance(args, dict) else {} if args is None else {"": args}
        parts.append({"functionCall": {"name": str(call.get("name") or ""), "args": json_safe(args)}})
    content = {"role": "model", "parts": parts}
    usage = _usage(turn.get("usage"))
    return ToolsRequested(content=content, usage=usage) if wanted else ModelAnswered(content=content, usage=usage)


def _usage(told: Any) -> Usage:
    """What was recorded of tokens; other recorders' names are understood, and what is not told is nothing."""
    if not isinstance(told, dict):
        return Usage()
    names = {
        "prompt": ("prompt", "prompt_tokens", "input_tokens"),
        "answer": ("answer", "completion_tokens", "output_tokens"),
    }
    found = {
        mine: next((told[name] for name in theirs if isinstance(told.get(name), int)), 0)
        for mine, theirs in names.items()
    }
    return Usage(**found)


def _results(responses: Iterable[JSON]) -> Iterator[ToolResult]:
    for position, response in enumerate(responses):
        failed = bool(response.get("is_error"))
        said = json_safe(response.get("response"))
        yield ToolResult(
            position=position,
            status=ResultStatus.FAILED if failed else ResultStatus.DONE,
            response={"error" if failed else "result": said},
        )


def in_order(events: Iterable[Event]) -> Iterator[Step]:
    """The events as a journal; each message begins a run."""
    run = 0
    for seq, event in enumerate(events, 1):
        run += isinstance(event, MessageReceived)
        yield Step(seq=seq, run=max(1, run), event=event, source="", state="", rests=isinstance(event, ModelAnswered))
