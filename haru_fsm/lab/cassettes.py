"""Recordings out of a cassette: the longest histories that models were given in it, and what they said to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from haru_fsm.conversation import (
    JSON,
    Event,
    MessageReceived,
    ModelAnswered,
    ObservationAppended,
    ResultStatus,
    ToolResult,
    ToolsExecuted,
    ToolsRequested,
)
from haru_fsm.errors import ModelError, SettingsError
from haru_fsm.foreign import in_words
from haru_fsm.lab.recordings import Recording, in_order
from haru_fsm.models.cassette_lines import Exchange, canonical, read_lines


def from_cassette(path: Path) -> Iterator[Recording]:
    """The conversations of a cassette. A success is one that ended in an answer; whether it was right nobody says.

    Raises SettingsError for a file that is no cassette.
    """
    try:
        tape = read_lines(path.read_bytes())
    except (OSError, ModelError) as error:
        raise SettingsError(f"{path} cannot be read as a cassette: {in_words(error)}") from error
    for exchange in _last(tape.exchanges):
        events = [event for content in exchange.contents for event in _events(content)]
        success = isinstance(exchange.outcome, ModelAnswered)
        yield Recording(tuple(in_order([*events, exchange.outcome])), success, {"cassette": path.name})


def _last(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Those whose history no other exchange carries on."""
    histories = {tuple(map(canonical, exchange.contents)): exchange for exchange in exchanges}
    carried_on = {history[:length] for history in histories for length in range(1, len(history))}
    yield from (exchange for history, exchange in histories.items() if history not in carried_on)


def _events(content: JSON) -> Iterator[Event]:
    parts = content.get("parts") or []
    responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if content.get("role") == "model":
        asks = any("functionCall" in part for part in parts)
        yield ToolsRequested(content=content) if asks else ModelAnswered(content=content)
    elif responses:
        yield ToolsExecuted(results=tuple(_result(place, said) for place, said in enumerate(responses)))
        yield ObservationAppended()
    else:
        yield MessageReceived(text="".join(str(part.get("text") or "") for part in parts))


def _result(position: int, said: JSON) -> ToolResult:
    response = said.get("response") or {}
    status = ResultStatus.FAILED if "error" in response else ResultStatus.DONE
    return ToolResult(position=position, status=status, response=response)
