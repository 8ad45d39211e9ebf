"""The chunks of a streamed Gemini reply, put together into the body that an unstreamed request would have had."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from haru_fsm.conversation import JSON
from haru_fsm.models.replies import as_dict, as_list, counts_so_far, said
from haru_fsm.models.snapshots import said_again

_FINAL_ON_CANDIDATE = ("finishReason", "finishMessage", "citationMetadata", "safetyRatings", "continuationToken")
_COUNTS = ("promptTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount")
_TOTAL = "totalTokenCount"


def merge_chunks(chunks: Iterable[object]) -> JSON:
    """One body out of many: parts in order, and of everything else what was said last.

    Neighbouring pieces of plain text become one part; a part with a signature stays a part of its own, since the
    signature belongs to exactly that part. Only the first candidate is looked at: we never ask for more.
    """
    body: JSON = {}
    candidate: JSON = {}
    parts: list[object] = []
    calls: dict[str, int] = {}
    for chunk in _news(list(map(as_dict, chunks))):
        body.update({key: value for key, value in chunk.items() if key not in ("candidates", "usageMetadata")})
        if usage := counts_so_far(as_dict(body.get("usageMetadata")), chunk.get("usageMetadata"), _COUNTS, _TOTAL):
            body["usageMetadata"] = usage
        if (latest := _first_candidate(chunk)) is None:
            continue
        candidate.update({key: latest[key] for key in _FINAL_ON_CANDIDATE if latest.get(key) is not None})
        for part in _parts(latest):
            _hear(parts, calls, part)
    if parts:
        candidate["content"] = {"role": "model", "parts": parts}
    return body | ({"candidates": [candidate]} if candidate else {})


def chunk_text(chunk: object) -> str:
    """The text of one chunk that belongs to the answer: no thoughts."""
    return _text(as_dict(chunk), thought=False)


def is_finished(body: JSON) -> bool:
    """Whether the stream came to its end: it said why it stopped, or why it never began, or that it failed."""
    finish = (_first_candidate(body) or {}).get("finishReason")
    return bool(block_of(body) or body.get("error") or (finish and finish != "FINISH_REASON_UNSPECIFIED"))


def block_of(body: JSON) -> str:
    """Why the prompt was blocked, in the provider's words; empty where it was not."""
    feedback = as_dict(body.get("promptFeedback"))
    reason = feedback.get("blockReason")
    return said(reason, feedback.get("blockReasonMessage")) if reason and reason != "BLOCK_REASON_UNSPECIFIED" else ""


def _first_candidate(chunk: JSON) -> JSON | None:
    for candidate in map(as_dict, as_list(chunk.get("candidates"))):
        if candidate.get("index") in (None, 0):
            return candidate
    return None


def _parts(candidate: JSON | None) -> list[Any]:
    return as_list(as_dict((candidate or {}).get("content")).get("parts"))


def _text(chunk: JSON, *, thought: bool) -> str:
    parts = [part for part in map(as_dict, _parts(_first_candidate(chunk))) if _is_thought(part) == thought]
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _news(chunks: Sequence[JSON]) -> Iterator[JSON]:
    """The chunks, without the texts that others of them say again."""
    again = {thought: said_again([_text(chunk, thought=thought) for chunk in chunks]) for thought in (False, True)}
    for index, chunk in enumerate(chunks):
        silent = [thought for thought in again if index in again[thought]]
        yield _without_text(chunk, silent) if silent else chunk


def _without_text(chunk: JSON, silent: Collection[bool]) -> JSON:
    """The chunk with its thoughts, or what is none, silent; what else there is in a part stays."""
    candidate = _first_candidate(chunk) or {}
    parts = [
        {**part, "text": ""} if "text" in part and _is_thought(part) in silent else part
        for part in map(as_dict, _parts(candidate))
    ]
    return {**chunk, "candidates": [{**candidate, "content": {**candidate["content"], "parts": parts}}]}


def _hear(parts: list[object], calls: dict[str, int], part: object) -> None:
    """Add a part, unless it is a call that was told, under the same id (`calls` says at which place) with the same
    arguments: streams tell some calls in two chunks, of which one is signed (allenhutchison/obsidian-gemini#230)."""
    call = as_dict(as_dict(part).get("functionCall"))
    at = calls.setdefault(str(call["id"]), len(parts)) if call.get("id") else len(parts)
    if at < len(parts) and as_dict(parts[at]).get("functionCall") == call:
        parts[at] = {**as_dict(part), **as_dict(parts[at])}
    else:
        _append(parts, part)


def _append(parts: list[object], part: object) -> None:
    before = parts[-1] if parts else None
    if _mergeable(before) and _mergeable(part) and _is_thought(before) == _is_thought(part):
        parts[-1] = as_dict(before) | {"text": as_dict(before)["text"] + as_dict(part)["text"]}
    else:
        parts.append(part)


def _mergeable(part: object) -> bool:
    return isinstance(part, dict) and part.keys() <= {"text", "thought"} and isinstance(part.get("text"), str)


def _is_thought(part: object) -> bool:
    return bool(as_dict(part).get("thought"))
