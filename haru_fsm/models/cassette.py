"""Cassettes: a real conversation with a model, frozen as a test.

    model = RecordingModel(GeminiModel("gemini-flash-latest"), "refund.jsonl")     # once, with a key
    model = CassetteModel("refund.jsonl")                                          # ever after, without

`cassette_lines.py` says what is recorded and why. What makes a request *the same* as a recorded one: the contents, and
whether tools were allowed. Everything that a change of the workflow, of a guard or of a tool does to a conversation
shows there, sooner or later. The system prompt and the words that tools are declared with are recorded for whoever
reads the file, and not compared: they are edited every week, and an edit that mattered could only be judged by asking
the real model again. Neither is compared how much time or how many requests were left.

Numbers that are new in each run (the tickets', by default) may differ: two requests are the same when the same number
stands wherever the same number stood. What is played back names the numbers of the replay.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from haru_fsm.conversation import JSON, FailureReason, ModelAnswered, ModelFailed
from haru_fsm.errors import ModelError
from haru_fsm.foreign import in_words
from haru_fsm.models import Model, ModelOutcome, ModelRequest, outcome_of
from haru_fsm.models.cassette_difference import told
from haru_fsm.models.cassette_lines import (
    Exchange,
    Tape,
    canonical,
    exchange,
    line_bytes,
    read_lines,
    reworded,
    scrubbed,
)

log = logging.getLogger(__name__)

CASSETTE = "cassette"
"""The model of a failure that nobody has recorded."""
VOLATILE = (r"HT-[0-9]{10}",)
"""Patterns of what is new in each run: the numbers of tickets."""


class Recorder:
    """Writes exchanges to a file; `keys` are left out of it.

    A file that is there is gone on with. Several recorders, also in several processes, may write to the same one: each
    exchange is one line, appended in one write. It has no reader but you: the file holds what customers wrote.

    Raises ModelError for a file that cannot be written.
    """

    def __init__(self, path: str | Path, *, keys: Iterable[str] = ()) -> None:
        self.path = Path(path)
        self._keys = tuple(keys)
        try:
            _append(self.path, b"")
            self._index = read_lines(self.path.read_bytes()).index
        except OSError as error:
            raise ModelError(
                f"The cassette {self.path} cannot be written: {in_words(error)}. Name another file."
            ) from error

    def note(self, request: ModelRequest, outcome: ModelOutcome) -> None:
        """Write one exchange down. Raises OSError where that does not work."""
        line = self._index.line(exchange(request, outcome, self._keys))
        _append(self.path, line_bytes(line))
        # Only now: a line that follows one which is not in the file could never be read.
        self._index.note(line["id"], self._index.head_of(line))


class RecordingModel:
    """Another model, with everything that it is asked and says written to a file: see `Recorder`."""

    def __init__(self, model: Model, path: str | Path, *, keys: Iterable[str] = ()) -> None:
        self.model = model
        self._recorder = Recorder(path, keys=keys)

    @property
    def name(self) -> str:
        """The name of the model that is recorded."""
        return self.model.name

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """What the model says; it is written down before it is handed on. A cancelled request leaves nothing."""
        outcome = await outcome_of(self.model, request)
        try:
            self._recorder.note(request, outcome)
        except (OSError, TypeError, ValueError):
            # A recorder that fails must not cost the customer the answer.
            log.exception("the cassette %s could not be written; an exchange is missing from it", self._recorder.path)
        return outcome

    async def aclose(self) -> None:
        """Close the model that is recorded."""
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()


def _append(path: Path, line: bytes) -> None:
    """One write at the end of the file. A line that a crash has cut off is ended first, and costs only itself."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if line and size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        while line:
            line = line[os.write(descriptor, line) :]
    finally:
        os.close(descriptor)


# --------------------------------------------------------------------------- playing


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    """Two requests are the same when their `text` is."""

    text: str
    """The request, with a placeholder for each number that is new in each run."""
    numbers: tuple[str, ...]
    """The numbers that stand in the places of the placeholders."""


class CassetteModel:
    """Plays a recording: the reply that was recorded for the same request, or a failure that shows the difference.

    Where the same request was recorded several times, the first reply comes first, and the last one stays. Replies
    have the model's name, tokens and cost that were recorded, so that guards judge as they did; nothing is waited for.
    `volatile`: patterns of what may differ from run to run.

    Raises ModelError for a file that cannot be read, or holds nothing.
    """

    def __init__(self, path: str | Path, *, volatile: Sequence[str] = VOLATILE) -> None:
        self._path = Path(path)
        self._volatile = re.compile("|".join(f"(?:{pattern})" for pattern in volatile) or r"(?!)")
        self._tape = self._read()
        self._recorded: defaultdict[str, list[Exchange]] = defaultdict(list)
        for one in self._tape.exchanges:
            self._recorded[self._fingerprint(one.contents, one.tools_allowed).text].append(one)
        models = dict.fromkeys(one.outcome.model for one in self._tape.exchanges if one.outcome.model)
        self.name = " > ".join(models) or CASSETTE
        """Those who were recorded: by their names it is known how much they can read."""
        self._played = Counter[str]()

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The recorded outcome; ModelFailed with the reason `replay` where there is none for this request."""
        contents = tuple(scrubbed(request.contents))
        now = self._fingerprint(contents, request.tools_allowed)
        recorded = self._recorded.get(now.text)
        if recorded is None:
            detail = told(self._path, self._tape, contents, request.tools_allowed, self._volatile)
            return ModelFailed(reason=FailureReason.REPLAY, detail=detail, model=CASSETTE)
        one = recorded[min(self._played[now.text], len(recorded) - 1)]
        self._played[now.text] += 1
        outcome = self._renamed(one, now)
        if isinstance(outcome, ModelAnswered) and request.on_text is not None:
            request.on_text(outcome.text)
        return outcome

    def _read(self) -> Tape:
        try:
            tape = read_lines(self._path.read_bytes())
        except OSError as error:
            raise ModelError(
                f"The cassette {self._path} cannot be read: {in_words(error)}. Record it with HARU_CASSETTE."
            ) from error
        if not tape.exchanges:
            raise ModelError(f"The cassette {self._path} holds no exchange with a model. Record it with HARU_CASSETTE.")
        return tape

    def _fingerprint(self, contents: Sequence[JSON], tools_allowed: bool) -> _Fingerprint:
        numbers: dict[str, int] = {}
        text = self._volatile.sub(
            lambda match: f"#{numbers.setdefault(match[0], len(numbers) + 1)}", canonical([contents, tools_allowed])
        )
        return _Fingerprint(text, tuple(numbers))

    def _renamed(self, one: Exchange, asked: _Fingerprint) -> ModelOutcome:
        """The outcome with the numbers of the recording exchanged for those that stand in their place now."""
        recorded = self._fingerprint(one.contents, one.tools_allowed).numbers
        if recorded == asked.numbers:
            return one.outcome
        now = dict(zip(recorded, asked.numbers, strict=True))
        return reworded(
            one.outcome, lambda text: self._volatile.sub(lambda number: now.get(number[0], number[0]), text)
        )
