"""Making a history shorter without breaking it. Pure: contents in, a `Compaction` or shorter contents out.

What is cut is cut in groups that belong together: a turn with calls and the turn with their responses are one, and
every other content is one by itself. First old results become short notes, with their names and ids, so that every
call keeps its response. Where that is not enough, the oldest groups are replaced by a record (`digest.py`).

    message | call, response | call, response | answer | message | call, response
    stays   |       old groups: notes, or the record   | stays   | recent: left alone

What holds of every plan, and is relied upon:

* The first content, whatever `stays` names (the latest message, calls in doubt), the last group, and a call without a
  response are left as they are. Only after a refusal is the first one cut short, where it is not the latest message: a
  request can never fit that begins with more than fits.
* The outcome is shorter, by a sixteenth at least: compaction that gains nothing would only cost the provider's cache.
* What was cut once is not cut again: a plan for the outcome of a plan is none, until more has come.
* The same contents give the same plan, in any process. It is journaled with the reply that came of it, by positions
  and with the record's own words, so that who reads the journal later makes the same contents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from haru_fsm.conversation import JSON, Compaction
from haru_fsm.digest import ids_of, lines_of, read_record, record, shortened, summary
from haru_fsm.toolbox.cutting import cut_for_model, cut_text, size_of

WORTH = 16
"""One part in so many has to be saved."""
LEAST_RECORD, MOST_RECORD = 2_000, 60_000
"""Bounds of a record's size in bytes."""
BESIDE_LINES = 800
"""Bytes that a record has beside its lines, about: its first line, and ids."""
LEFT_OUT = "(An attachment was here. It is too large to be shown again.)"
BYTES_PER_CHAR = 4
"""Of UTF-8, at most."""
TRANSCRIPT_SCALE = 8
"""How much more of each text a model reads that is to summarise it."""


@dataclass(frozen=True, slots=True)
class Room:
    """What there is room for. `aim`: the size of contents to come down to, in bytes of JSON, if that is possible."""

    aim: int
    keep_recent: int
    """Contents at the end that are left alone; a group that stands across this border is an old one."""
    recent_chars: int | None = None
    """Set after a refusal: what any result that is left may have in characters. Then every saving is worth it."""

    @property
    def record(self) -> int:
        """The size of a record at most."""
        return min(max(self.aim // 4, LEAST_RECORD), MOST_RECORD)

    def is_worth(self, before: int, after: int) -> bool:
        """Whether coming down from this size to that one is worth a compaction."""
        return after < before if self.recent_chars is not None else (before - after) * WORTH >= before


@dataclass(frozen=True, slots=True)
class Group:
    """Contents that belong together: positions from `start` up to `stop`."""

    start: int
    stop: int


def plan(contents: Sequence[JSON], stays: Collection[int], room: Room, *, recorded: bool) -> Compaction | None:
    """How to make these contents shorter, or None where it is not worth it.

    `stays`: positions that are left as they are, with their groups. `recorded`: the second content is a record, which
    a new one goes on with.
    """
    old = list(_old(contents, stays, room.keep_recent, recorded))
    before = sum(map(size_of, contents))
    if not old and room.recent_chars is None:
        return None
    planned = _noted(contents, old, room, first=0 not in stays)
    sizes = _sizes(contents, planned)
    if sum(sizes) > room.aim and old:
        planned = _digested(contents, old[: _enough(contents, old, sizes, room)], planned, room, recorded)
    left = sum(_sizes(contents, planned))
    return planned.model_copy(update={"before": before, "after": left}) if room.is_worth(before, left) else None


def _sizes(contents: Sequence[JSON], planned: Compaction) -> list[int]:
    return [size_of(content) for content in shorter(contents, planned)[0]]


def _old(contents: Sequence[JSON], stays: Collection[int], keep_recent: int, recorded: bool) -> Iterator[Group]:
    """The groups that may be cut, the oldest first."""
    groups = list(_groups(contents))
    for group in groups[1 + recorded : -1]:
        if group.start >= len(contents) - keep_recent:
            return
        if not any(group.start <= position < group.stop for position in stays):
            yield group


def _groups(contents: Sequence[JSON]) -> Iterator[Group]:
    start = 0
    while start < len(contents):
        answered = _has(contents[start], "functionCall") and start + 1 < len(contents)
        yield Group(start, start + 1 + answered)
        start += 1 + answered


def _has(content: JSON, what: str) -> bool:
    return any(what in part for part in content["parts"])


def _noted(contents: Sequence[JSON], old: Sequence[Group], room: Room, *, first: bool) -> Compaction:
    """Every old result becomes a note. `first`: the first content may be cut, where recent results are."""
    until, chars = old[-1].stop if old else 0, room.recent_chars
    return Compaction(until=until, kept=_kept(old, until), recent_chars=chars, first_chars=chars if first else None)


def _kept(old: Sequence[Group], until: int) -> tuple[int, ...]:
    cut = {position for group in old for position in range(group.start, group.stop)}
    return tuple(position for position in range(until) if position not in cut)


def _enough(contents: Sequence[JSON], old: Sequence[Group], sizes: Sequence[int], room: Room) -> int:
    """How many of the oldest groups have to become lines of a record; all of them where none is enough."""
    left, lines = sum(sizes) + BESIDE_LINES, 0
    for count, group in enumerate(old, 1):
        gone = contents[group.start : group.stop]
        left -= sum(sizes[group.start : group.stop])
        lines += sum(map(size_of, lines_of(gone)))
        if left + min(lines, 2 * room.record) <= room.aim:
            return count
    return len(old)


def _digested(
    contents: Sequence[JSON], gone: Sequence[Group], noted: Compaction, room: Room, recorded: bool
) -> Compaction:
    """These groups become lines of the record, after those of the record before."""
    lines, ids = _told(contents, gone, recorded)
    kept = tuple(position for position in noted.kept if not (recorded and position == 1))
    text = record(lines, ids, room.record)
    return noted.model_copy(update={"digested": gone[-1].stop, "kept": kept, "record": text})


def _told(
    contents: Sequence[JSON], gone: Sequence[Group], recorded: bool, scale: int = 1
) -> tuple[list[str], list[str]]:
    """The lines and the ids of a record that goes on with the one before."""
    lines, ids = read_record(contents[1]["parts"][0]["text"]) if recorded else ([], [])
    for group in gone:
        turns = contents[group.start : group.stop]
        lines += lines_of(turns, scale)
        ids = list(dict.fromkeys([*ids, *ids_of(turns)]))
    return lines, ids


# --------------------------------------------------------------------------- a summary instead of the digest


def transcript(contents: Sequence[JSON], planned: Compaction, *, recorded: bool) -> str:
    """What a plan would put into its record, at greater length, for a model that is to summarise it."""
    lines, ids = _told(contents, _gone(contents, planned, recorded), recorded, TRANSCRIPT_SCALE)
    return record(lines, ids, MOST_RECORD)


def with_summary(contents: Sequence[JSON], planned: Compaction, text: str, *, recorded: bool) -> Compaction | None:
    """The plan with a model's summary as its record; None where that is longer than the digest, and than half of what
    it stands for. Ids that the summary does not name are added to it."""
    gone = _gone(contents, planned, recorded)
    written = summary(text, _told(contents, gone, recorded)[1])
    stood_for = sum(size_of(content) for group in gone for content in contents[group.start : group.stop])
    if size_of(written) > max(size_of(planned.record), stood_for // 2):
        return None
    found = planned.model_copy(update={"record": written, "by": "model"})
    return found.model_copy(update={"after": sum(_sizes(contents, found))})


def _gone(contents: Sequence[JSON], planned: Compaction, recorded: bool) -> list[Group]:
    """The groups that the record stands for, without the record before."""
    groups = (group for group in _groups(contents) if 0 < group.start < planned.digested)
    return [group for group in groups if group.start not in planned.kept and not (recorded and group.start == 1)]


# --------------------------------------------------------------------------- carrying it out


def shorter(contents: Sequence[JSON], planned: Compaction) -> tuple[tuple[JSON, ...], dict[int, int]]:
    """The contents as planned, and where those that are still there went: position before, position after.

    A plan that does not fit these contents (another version of the engine has made it) leaves them as they are.
    """
    if not _fits(contents, planned):
        return tuple(contents), {position: position for position in range(len(contents))}
    made: list[JSON] = []
    moved: dict[int, int] = {}
    for position, content in enumerate(contents):
        if position == 1 and planned.record:
            made.append({"role": "user", "parts": [{"text": planned.record}]})
        if 0 < position < planned.digested and position not in planned.kept:
            continue
        moved[position] = len(made)
        made.append(_cut(content, position, planned))
    return tuple(made), moved


def _cut(content: JSON, position: int, planned: Compaction) -> JSON:
    if position == 0 and planned.first_chars is not None:
        return {**content, "parts": [_begun(part, planned.first_chars) for part in content["parts"]]}
    if position in planned.kept:
        return content
    if position < planned.until:
        return _with_notes(content, None)
    return content if planned.recent_chars is None else _with_notes(content, planned.recent_chars)


def _begun(part: JSON, chars: int) -> JSON:
    """The beginning of a text; of anything else that is too long, that it was there."""
    text = part.get("text")
    if isinstance(text, str):
        return part if len(text) <= chars else {**part, "text": cut_text(text, chars - 1) + "…"}
    return part if size_of(part) <= chars * BYTES_PER_CHAR else {"text": LEFT_OUT}


def _with_notes(content: JSON, chars: int | None) -> JSON:
    """The content with its results as notes, or, where a number of characters is given, cut to it."""
    if not _has(content, "functionResponse"):
        return content
    return {**content, "parts": [_noted_part(part, chars) for part in content["parts"]]}


def _noted_part(part: JSON, chars: int | None) -> JSON:
    said = part.get("functionResponse")
    if said is None:
        return part
    response = shortened(said["response"]) if chars is None else cut_for_model(said["response"], chars)
    return {**part, "functionResponse": {**said, "response": response}}


def _fits(contents: Sequence[JSON], planned: Compaction) -> bool:
    """Whether no pair is split, and every call that stays comes after a user turn."""
    if not 0 <= planned.digested <= planned.until <= len(contents) or (planned.digested and not planned.record):
        return False
    groups = [group for group in _groups(contents) if group.start < planned.digested]
    kept = [sum(position in planned.kept for position in range(group.start, group.stop)) for group in groups]
    whole = all(count in (0, group.stop - group.start) for count, group in zip(kept, groups, strict=True))
    staying = [group for count, group in zip(kept, groups, strict=True) if count]
    users = all(contents[group.stop - 1]["role"] == "user" for group in staying)
    return whole and users and all(group.stop <= planned.digested for group in groups)
