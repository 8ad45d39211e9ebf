"""`python -m bench.compaction [--data FILE] [--windows TOKENS ...] [--json]`: what compaction saves, and what it costs.

The recorded conversations are put into journals as the engine would have written them, and every recorded reply is a
request: its contents come out of the real history, once whole and once compacted as the engine would have done it for
a model with such a window. Nothing is asked of a model, so replies are those of the recording in both; the tokens of a
window are estimated by the rule for a conversation that no provider has counted yet, four bytes to a token.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from haru_fsm import Limits
from haru_fsm.compaction import plan
from haru_fsm.contents import History
from haru_fsm.conversation import (
    Event,
    MessageReceived,
    ModelAnswered,
    ModelEvent,
    ObservationAppended,
    ResultStatus,
    Step,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.fitting import room_for
from haru_fsm.models.windows import window_of
from haru_fsm.testing.strict import check_contents

DATA = Path(__file__).parents[2] / "shared" / "data" / "tau_bench_airline_gpt4o.jsonl.gz"
WINDOWS = (2_560, 4_096, 8_192, 16_384, window_of("gpt-4o") or 0, window_of("gemini-flash-latest") or 0)


@dataclass(slots=True)
class Sum:
    """What was sent with one window. Characters are those of the system prompt and of the contents as JSON."""

    window: int
    conversations: int = 0
    requests: int = 0
    chars_system: int = 0
    chars_whole: int = 0
    chars: int = 0
    largest_whole: int = 0
    largest: int = 0
    over: int = 0
    """Requests of whole histories that the window would not have held."""
    over_after: int = 0
    compactions: int = 0
    planning_ms: float = 0.0

    @property
    def saved(self) -> float:
        """Share of the characters that was not sent."""
        return 1 - self.chars / self.chars_whole

    @property
    def saved_contents(self) -> float:
        """The same of the contents alone."""
        return 1 - (self.chars - self.chars_system) / (self.chars_whole - self.chars_system)


def main() -> None:
    """Measure and show."""
    options = _options()
    if not options.data.is_file():
        sys.exit(f"There is no recording at {options.data}. Give one with --data FILE (lines of JSON, gzipped).")
    with gzip.open(options.data, "rt") as lines:
        recorded = [json.loads(line) for line in lines]
    sums = [_measured(recorded, window) for window in options.windows]
    if options.json:
        json.dump(
            [{**asdict(each), "saved": each.saved, "saved_contents": each.saved_contents} for each in sums],
            sys.stdout,
            indent=2,
        )
        print()
    else:
        _show(sums)


def _measured(recorded: list[dict[str, Any]], window: int) -> Sum:
    limits, found = Limits(max_input_tokens=window), Sum(window)
    for conversation in recorded:
        found.conversations += 1
        _play(conversation, limits, found)
    return found


def _play(conversation: dict[str, Any], limits: Limits, found: Sum) -> None:
    """One conversation, whole and compacted, side by side."""
    whole, short, system = History(), History(), int(conversation["system_chars"])
    for seq, event in enumerate(_events(conversation["turns"]), 1):
        step = Step(seq=seq, run=1, event=event, source="", state="")
        whole = whole.fold(step)
        if isinstance(event, ModelEvent):
            step = _compacted(step, short, system, limits, found)
            assert isinstance(step.event, ModelEvent)
            _count(found, whole.contents[:-1], short.as_asked(step.event).request(), system)
        short = short.fold(step)


def _compacted(step: Step, history: History, system: int, limits: Limits, found: Sum) -> Step:
    """The step with the compaction that its request would have had."""
    began = time.perf_counter()
    room = room_for(history, system, limits, "")
    marks = history.marks
    planned = room and plan(history.contents, history.stays, room, recorded=marks.recorded)
    found.planning_ms += (time.perf_counter() - began) * 1000
    if planned is None:
        return step
    found.compactions += 1
    return step._replace(event=step.event.model_copy(update={"compaction": planned}))


def _count(found: Sum, whole: tuple[Any, ...], sent: tuple[Any, ...], system: int) -> None:
    if wrong := check_contents(list(sent)):
        raise AssertionError(f"A request would have been refused: {wrong[0]}")
    chars_whole, chars = (system + len(_json(contents)) for contents in (whole, sent))
    found.requests += 1
    found.chars_system += system
    found.chars_whole += chars_whole
    found.chars += chars
    found.largest_whole = max(found.largest_whole, chars_whole)
    found.largest = max(found.largest, chars)
    found.over += _tokens(whole, system) > found.window
    found.over_after += _tokens(sent, system) > found.window


def _tokens(contents: tuple[Any, ...], system: int) -> float:
    return (system + len(_json(contents).encode())) / 4


def _json(contents: tuple[Any, ...]) -> str:
    return json.dumps(contents, ensure_ascii=False, separators=(",", ":"))


# --------------------------------------------------------------------------- the recording as a journal


def _events(turns: list[dict[str, Any]]) -> Iterator[Event]:
    for turn in turns:
        match turn["role"]:
            case "user":
                yield MessageReceived(text=turn["text"] or " ")
            case "model" if turn.get("calls"):
                yield ToolsRequested(content=_content(turn))
            case "model" if turn["text"]:
                yield ModelAnswered(content=_content(turn))
            case "tool":
                results = tuple(map(_result, range(len(turn["responses"])), turn["responses"]))
                yield from (ToolsExecuted(results=results), ObservationAppended())


def _content(turn: dict[str, Any]) -> dict[str, Any]:
    said = [{"text": turn["text"]}] if turn["text"] else []
    return {"role": "model", "parts": [*said, *({"functionCall": call} for call in turn.get("calls", ()))]}


def _result(position: int, said: dict[str, Any]) -> ToolResult:
    try:
        value = json.loads(said["response"])
    except ValueError:
        value = said["response"]
    response = {"error" if said["is_error"] else "result": value}
    return ToolResult(position=position, status=ResultStatus.DONE, response=response)


# --------------------------------------------------------------------------- the command


def _show(sums: list[Sum]) -> None:
    first = sums[0]
    columns = (
        "window, tokens",
        "characters",
        "saved",
        "of contents",
        "largest",
        "over the window",
        "compactions",
        "ms",
    )
    table = Table(*columns, title=f"{first.conversations} conversations, {first.requests:,} requests")
    table.add_row("(whole)", f"{first.chars_whole:,}", "", "", f"{first.largest_whole:,}", "", "", "")
    for each in sums:
        table.add_row(
            f"{each.window:,}",
            f"{each.chars:,}",
            f"{each.saved:.1%}",
            f"{each.saved_contents:.1%}",
            f"{each.largest:,}",
            f"{each.over} → {each.over_after}",
            f"{each.compactions:,}",
            f"{each.planning_ms / each.compactions:.1f}" if each.compactions else "",
        )
    Console(width=120).print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.compaction", description="What compaction saves.")
    parser.add_argument("--data", type=Path, default=DATA, help="the recorded conversations")
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOWS, help="tokens of a request")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
