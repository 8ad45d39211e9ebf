"""Turns of a history that another loop has made, put such that each call is followed by its own response.

A history is read in exchanges: what the model said, and what came until it spoke again. Loops keep one in many ways: a
turn for each chunk of a stream, a turn for each response, responses in the order in which they came in, a message of
the customer before them. Within an exchange it is plain what belongs together; beyond it nothing is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from haru_fsm.conversation import JSON, ToolCall, content_calls

LOST = "The result of this call was lost before this conversation was taken over."
BEGINNING = "(이전 대화에서 이어집니다.)"


def paired(turns: Iterable[JSON], repairs: dict[str, None]) -> Iterator[JSON]:
    """The turns in an order that the API takes; `repairs` gets a line for each thing that was mended.

    `turns` have the role `user` or `model` and parts in REST spelling; calls stand only where the model speaks, and
    responses in turns of their own.
    """
    for number, (said, heard) in enumerate(_exchanges(turns, repairs)):
        if said and number == 0:
            repairs["a user turn was put before the first turn of the model"] = None
            yield {"role": "user", "parts": [{"text": BEGINNING}]}
        yield from _exchange(said, heard, repairs)


def _exchanges(turns: Iterable[JSON], repairs: dict[str, None]) -> Iterator[tuple[list[JSON], list[JSON]]]:
    """What the model said in a row, and what came after it; before the first word of the model nothing was said."""
    said, heard = list[JSON](), list[JSON]()
    for turn in turns:
        if _responses(turn) and not any(map(content_calls, said)):
            repairs["a response without a call was left out"] = None
            continue
        if turn["role"] == "model" and heard:
            yield said, heard
            said, heard = [], []
        (said if turn["role"] == "model" else heard).append(turn)
    yield said, heard


def _exchange(said: list[JSON], heard: list[JSON], repairs: dict[str, None]) -> Iterator[JSON]:
    answering = [turn for turn in heard if _responses(turn)]
    if len(answering) > 1:
        repairs["responses in several turns were joined into one"] = None
    if answering and answering[0] is not heard[0]:
        repairs["a response was put right after its call"] = None
    responses = [response for turn in answering for response in _responses(turn)]
    spoken = _joined(said, responses, repairs)
    for number, turn in enumerate(spoken, 1):
        yield turn
        if calls := content_calls(turn):
            yield _answers(calls, responses if number == len(spoken) else [], repairs)
    yield from (turn for turn in heard if not _responses(turn))


def _responses(turn: JSON) -> list[JSON]:
    return [part["functionResponse"] for part in turn["parts"] if "functionResponse" in part]


def _joined(said: Sequence[JSON], responses: Sequence[JSON], repairs: dict[str, None]) -> list[JSON]:
    """Turns of the model in a row, made one. A call stays apart, and without a response, where the calls after it leave
    none for it, and no response names it or one before it."""
    named = _first_named(said, responses)
    made = list(said[-1:])
    for number, turn in reversed(list(enumerate(said[:-1]))):
        left = len(responses) - len(content_calls(made[0])) if len(made) == 1 else 0
        if content_calls(turn) and left <= 0 and number < named:
            made.insert(0, turn)
        else:
            made[0] = {**turn, "parts": [*turn["parts"], *made[0]["parts"]]}
            repairs["two turns of the model in a row were joined"] = None
    return made


def _first_named(said: Sequence[JSON], responses: Sequence[JSON]) -> int:
    """The first turn with a call that a response names, and names none after it."""
    calls = [content_calls(turn) for turn in said]
    latest = [
        [at for at, each in enumerate(calls) if any(_names(call, response) for call in each)] for response in responses
    ]
    return min((at[-1] for at in latest if at), default=len(said))


def _names(call: ToolCall, response: JSON) -> bool:
    if call.id is not None and response.get("id") is not None:
        return bool(call.id == response["id"])
    return response.get("name") in (call.name, call.id)


def _answers(calls: Sequence[ToolCall], responses: Sequence[JSON], repairs: dict[str, None]) -> JSON:
    """One turn with a response for each call: its own, or one that says that it was lost."""
    found = _matched(calls, responses)
    if len(found) < len(calls):
        repairs["a call without a response got one that says so"] = None
    if len(found) < len(responses):
        repairs["a response without a call was left out"] = None
    places = [found[call.position] for call in calls if call.position in found]
    if places != sorted(places):
        repairs["responses were put into the order of their calls"] = None
    parts = []
    for call in calls:
        response = responses[found[call.position]] if call.position in found else _lost(call)
        if not _is_of(call, response):
            repairs["a response got the name and the id of its call"] = None
        parts.append(_answer(call, response.get("response")))
    return {"role": "user", "parts": parts}


def _matched(calls: Sequence[ToolCall], responses: Sequence[JSON]) -> dict[int, int]:
    """For the position of each call that has one, which response is its own.

    What says so most plainly counts first: name and id, then the id, which loops also write in the place of the name,
    then the name. One that names none of these calls belongs to the first that is left, for names get lost.
    """
    names = {call.name for call in calls}
    ways: tuple[Callable[[ToolCall, JSON], bool], ...] = (
        _is_of,
        lambda call, response: call.id is not None and call.id in (response.get("id"), response.get("name")),
        lambda call, response: call.name == response.get("name"),
        lambda call, response: response.get("name") not in names and None in (call.id, response.get("id")),
    )
    found: dict[int, int] = {}
    for fits in ways:
        for call in calls:
            left = (each for each in range(len(responses)) if each not in found.values())
            place = None if call.position in found else next((at for at in left if fits(call, responses[at])), None)
            if place is not None:
                found[call.position] = place
    return found


def _is_of(call: ToolCall, response: JSON) -> bool:
    return (call.name, call.id) == (response.get("name"), response.get("id"))


def _lost(call: ToolCall) -> JSON:
    return {"name": call.name, "id": call.id, "response": {"error": LOST}}


def _answer(call: ToolCall, response: Any) -> JSON:
    said: JSON = {"name": call.name, "response": response if isinstance(response, dict) else {"result": response}}
    if call.id is not None:
        said["id"] = call.id
    return {"functionResponse": said}
