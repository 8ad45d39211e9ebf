"""A cassette's lines: exchanges with a model as JSON Lines. Pure.

One line is one exchange, in the words of the model protocol: what was asked (`ModelRequest`) and what came of it (an
event). Not the HTTP traffic: which headers an SDK sends, whether a reply was streamed, how often it was retried and
which provider gave it are no part of a conversation, and a recording that held them would be out of date with the next
release of somebody else's library. What is on a line can be read, in Korean too, and be replayed by every part of the
product that takes a model.

    {"format": 1, "id": "1f0c…", "system": "…", "declarations": […], "contents": […], "outcome": {"kind": …}}
    {"format": 1, "id": "77ab…", "follows": "1f0c…", "same": 1, "contents": […], "outcome": {"kind": …}}

A request repeats the whole history, so a line says only what is new: of the exchange that it `follows` it takes the
first `same` contents, the system prompt and the declarations. A file grows with what was said, not with its square.
Lines stand for themselves otherwise: files may be joined, and a line that a crash has cut off costs only what follows
it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from haru_fsm.conversation import JSON, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.errors import ModelError
from haru_fsm.models import Declaration, ModelOutcome, ModelRequest
from haru_fsm.models.scrub import scrub

FORMAT = 1
"""Version of a line. A newer one is refused."""
_OUTCOME: TypeAdapter[ModelOutcome] = TypeAdapter(
    Annotated[ModelAnswered | ToolsRequested | ModelFailed, Field(discriminator="kind")]
)
_OF_THE_JOURNAL = {"at", "took_ms", "settled", "compaction"}
"""Fields of an event that the engine adds: a model has not said them."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request as a model was given it, and what came of it. Time left and requests left are no part of it."""

    system: str
    contents: tuple[JSON, ...]
    declarations: tuple[JSON, ...]
    tools_allowed: bool
    outcome: ModelOutcome


def exchange(request: ModelRequest, outcome: ModelOutcome, keys: Iterable[str] = ()) -> Exchange:
    """What is kept of a request and its outcome: everything but these keys, and whatever looks like one."""
    keys = tuple(keys)
    said = outcome.model_dump(mode="json", exclude_unset=True, exclude=_OF_THE_JOURNAL)
    return Exchange(
        system=scrub(request.system, *keys),
        contents=tuple(scrubbed(request.contents, keys)),
        declarations=tuple(scrubbed([_declared(one) for one in request.declarations], keys)),
        tools_allowed=request.tools_allowed,
        outcome=_OUTCOME.validate_python(scrubbed(said, keys)),
    )


def _declared(declaration: Declaration) -> JSON:
    return {name: value for name, value in declaration.told.items() if value is not None}


def scrubbed(value: Any, keys: Sequence[str] = ()) -> Any:
    """A JSON value without keys in any of its texts."""
    return _with_texts(value, lambda text: scrub(text, *keys))


def reworded(outcome: ModelOutcome, change: Callable[[str], str]) -> ModelOutcome:
    """The outcome with each of its texts changed."""
    return _OUTCOME.validate_python(_with_texts(outcome.model_dump(mode="json", exclude_unset=True), change))


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {name: _with_texts(each, change) for name, each in value.items()}
        case list() | tuple():
            return [_with_texts(each, change) for each in value]
    return value


# --------------------------------------------------------------------------- writing


@dataclass(slots=True)
class Index:
    """The lines of a file by their ids, as far as a new line needs to know them: it holds no contents.

    A line's id is a digest of what stands before the outcome: the system prompt, the declarations, and each content in
    turn. So the id of a line is also that of every request that begins like it, at the length that it begins so.
    """

    _heads: dict[str, str] = field(default_factory=dict)
    """By id: the digest of system prompt and declarations."""
    _latest: dict[str, str] = field(default_factory=dict)
    """By that digest: the last line that has them."""

    def line(self, one: Exchange) -> JSON:
        """The line of an exchange. Others may follow it once it is written, and `note` was told so."""
        head, *ids = _digests([one.system, one.declarations], one.contents)
        name = ids[-1] if ids else head
        line: JSON = {"format": FORMAT, "id": name}
        follows, same = self._followed(head, ids)
        if follows is None:
            line |= {"system": one.system, "declarations": one.declarations}
        else:
            line |= {"follows": follows, "same": same}
        line["contents"] = one.contents[same:]
        if not one.tools_allowed:
            line["tools_allowed"] = False
        line["outcome"] = one.outcome.model_dump(mode="json", exclude_unset=True)
        return line

    def _followed(self, head: str, ids: Sequence[str]) -> tuple[str | None, int]:
        """The longest line that the request begins with, else one with the same head; and the contents they share."""
        for same in range(len(ids), 0, -1):
            if ids[same - 1] in self._heads:
                return ids[same - 1], same
        return self._latest.get(head), 0

    def note(self, name: str, head: str) -> None:
        """There is a line of this id with this head."""
        self._heads[name] = head
        self._latest[head] = name

    def head_of(self, line: JSON) -> str:
        """The head of a line that was read. Raises LookupError where it follows one that is not there."""
        if "system" not in line:
            return self._heads[line["follows"]]
        return next(_digests([line["system"], line["declarations"]], ()))


def _digests(head: Any, contents: Iterable[JSON]) -> Iterator[str]:
    """A digest of the head, of it and the first content, of it and the first two, and so on."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (head, *contents):
        digest.update(canonical(part).encode("utf-8", "surrogatepass"))
        yield digest.hexdigest()


def canonical(value: Any) -> str:
    """A JSON value as a text that is the same for the same value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def line_bytes(line: JSON) -> bytes:
    """A line as it stands in the file, Korean and emoji as they are; a half of a surrogate pair is escaped."""
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


# --------------------------------------------------------------------------- reading


@dataclass(slots=True)
class Tape:
    """What a cassette holds, in order."""

    exchanges: list[Exchange] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    """Numbers of lines that could not be read: cut off by a crash, or edited."""
    index: Index = field(default_factory=Index)
    _by_id: dict[str, Exchange] = field(default_factory=dict)

    def read(self, line: JSON) -> None:
        """Take a line in. Raises LookupError, TypeError, ValueError for one that cannot be used as it is."""
        if line["format"] > FORMAT:
            raise ModelError(
                f"A cassette has lines of format {line['format']}, newer than this haru_fsm knows. Update it."
            )
        head = self.index.head_of(line)
        one = self._whole(line)
        self.exchanges.append(one)
        self._by_id[line["id"]] = one
        self.index.note(line["id"], head)

    def _whole(self, line: JSON) -> Exchange:
        before = self._by_id[line["follows"]] if "follows" in line else None
        return Exchange(
            system=before.system if before is not None else line["system"],
            contents=(*(before.contents[: line["same"]] if before is not None else ()), *line["contents"]),
            declarations=before.declarations if before is not None else tuple(line["declarations"]),
            tools_allowed=line.get("tools_allowed", True),
            outcome=_OUTCOME.validate_python(line["outcome"]),
        )


def read_lines(text: bytes) -> Tape:
    """The exchanges of a cassette, in order. Lines that cannot be read are left out and noted.

    Raises ModelError for a format that is newer than this.
    """
    tape = Tape()
    for number, raw in enumerate(text.split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            tape.read(json.loads(raw))
        except (LookupError, TypeError, ValueError, ValidationError):
            tape.unreadable.append(number)
    return tape
