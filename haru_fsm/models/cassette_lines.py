"""A cassette's lines: exchanges with a model as JSON Lines. Pure.

One line is one exchange, in the words of the model protocol: what was asked (`ModelRequest`) and what came of it (an
event). Not the HTTP traffic: which headers an SDK sends, whether a reply was streamed, how often it was retried and
which provider gave it are no part of a conversation, and a recording that held them would be out of date with the next
release of somebody else's library. What is on a line can be read, in Korean too, and be replayed by every part of the
product that takes a model.

    {"format": 1, "id": "1f0c…", "system": "…", "declarations": […], "contents": […], "outcome": {"kind": …}}
    {"format": 1, "id": "77ab…", "follows": "1f0c…", "same": 1, "contents": […], "outcome": {"kind": …}}

A request repeats the whole history, so a line says only what is new: of the exchange that it `follows` it takes the
first `same` contents, and the system prompt and the declarations where it has none of its own. A file grows with what
was said, not with its square. Lines stand for themselves otherwise: files may be joined, and a line that a crash has
cut off costs only what follows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
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
_OF_THE_JOURNAL = {"at", "took_ms", "settled"}
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
    return {name: value for name, value in asdict(declaration).items() if value is not None}


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
class Tape:
    """The exchanges of a file so far, and what a new line can refer to."""

    exchanges: list[Exchange] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    """Numbers of lines that could not be read: cut off by a crash, or edited."""
    _by_id: dict[str, Exchange] = field(default_factory=dict)
    _prefixes: dict[bytes, tuple[str, int]] = field(default_factory=dict)
    _last: str | None = None

    def add(self, one: Exchange) -> JSON:
        """Take the exchange in; returns its line."""
        prefixes = list(_prefixes(one.contents))
        follows, same = self._followed(prefixes)
        line: JSON = {"format": FORMAT, "id": _id(one)}
        earlier = self._by_id.get(follows or "")
        if earlier is not None:
            line |= {"follows": follows, "same": same}
        if earlier is None or earlier.system != one.system:
            line["system"] = one.system
        if earlier is None or earlier.declarations != one.declarations:
            line["declarations"] = one.declarations
        line["contents"] = one.contents[same:]
        if not one.tools_allowed:
            line["tools_allowed"] = False
        line["outcome"] = one.outcome.model_dump(mode="json", exclude_unset=True)
        self._note(line["id"], one, prefixes)
        return line

    def _followed(self, prefixes: Sequence[bytes]) -> tuple[str | None, int]:
        """The exchange that shares the most contents, else the last one; and how many contents it shares."""
        for prefix in reversed(prefixes):
            if prefix in self._prefixes:
                return self._prefixes[prefix]
        return self._last, 0

    def _note(self, name: str, one: Exchange, prefixes: Iterable[bytes]) -> None:
        self.exchanges.append(one)
        self._by_id[name] = one
        self._last = name
        for count, prefix in enumerate(prefixes, 1):
            self._prefixes.setdefault(prefix, (name, count))

    def read(self, line: JSON) -> None:
        """Take a line in. Raises LookupError, TypeError, ValueError for one that cannot be used as it is."""
        if line["format"] > FORMAT:
            raise ModelError(
                f"A cassette has lines of format {line['format']}, newer than this haru_fsm knows. Update it."
            )
        earlier = self._by_id[line["follows"]] if "follows" in line else None
        before = earlier.contents[: line["same"]] if earlier is not None else ()
        one = Exchange(
            system=line["system"] if "system" in line or earlier is None else earlier.system,
            contents=(*before, *line["contents"]),
            declarations=(
                tuple(line["declarations"]) if "declarations" in line or earlier is None else earlier.declarations
            ),
            tools_allowed=line.get("tools_allowed", True),
            outcome=_OUTCOME.validate_python(line["outcome"]),
        )
        self._note(line["id"], one, _prefixes(one.contents))


def _prefixes(contents: Iterable[JSON]) -> Iterator[bytes]:
    """A digest of the first content, of the first two, and so on."""
    digest = hashlib.blake2b(digest_size=12)
    for content in contents:
        digest.update(canonical(content).encode("utf-8", "surrogatepass"))
        yield digest.digest()


def _id(one: Exchange) -> str:
    asked = [one.system, one.declarations, one.contents, one.tools_allowed]
    return hashlib.blake2b(canonical(asked).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def canonical(value: Any) -> str:
    """A JSON value as a text that is the same for the same value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def line_bytes(line: JSON) -> bytes:
    """A line as it stands in the file, Korean and emoji as they are; a half of a surrogate pair is escaped."""
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


# --------------------------------------------------------------------------- reading


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
