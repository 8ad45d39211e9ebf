"""Journals of every shape, long ones too: for whatever has to hold of any history."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from haru_fsm.contents import History
from haru_fsm.conversation import (
    JSON,
    Event,
    FailureReason,
    HistoryAdopted,
    MessageReceived,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Resumed,
    Step,
    TicketClosed,
    TicketOpened,
    ToolResult,
    ToolsExecuted,
    Usage,
)
from haru_fsm.models.scripted import answer, calls
from tests.tables import a_ticket

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
LONG = st.builds(lambda text, times: text * times, TEXT, st.sampled_from([1, 1, 40, 300]))
NAMES = st.sampled_from(["get_order", "pay", "누구"])
SIGNATURES = st.sampled_from(["c2ln", "QUJD" * 20])

RESULTS = st.builds(
    ToolResult,
    position=st.integers(0, 2),
    status=st.sampled_from(ResultStatus),
    response=st.dictionaries(st.sampled_from(["result", "error", "note", "items"]), LONG, max_size=2),
)


def _call(name: str, id_: str | None, args: JSON, signature: str | None) -> JSON:
    call = {"name": name, **({"id": id_} if id_ else {}), **({"args": args} if args else {})}
    return {"functionCall": call, **({"thoughtSignature": signature} if signature else {})}


CALLS = st.builds(
    _call,
    NAMES,
    st.sampled_from([None, "a", "b"]),
    st.dictionaries(NAMES, st.one_of(st.integers(), LONG), max_size=1),
    st.one_of(st.none(), SIGNATURES),
)
REQUESTS = st.builds(
    lambda said, parts: calls().model_copy(
        update={"content": {"role": "model", "parts": [*said, *parts]}, "usage": Usage(prompt=900, answer=30)}
    ),
    st.lists(st.builds(lambda text: {"text": text}, LONG), max_size=1),
    st.lists(CALLS, min_size=1, max_size=3),
)
ADOPTED = st.just(
    HistoryAdopted(
        contents=(
            {"role": "user", "parts": [{"text": "전에 물었던 것"}]},
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "get_order", "id": "z"}, "thoughtSignature": "QUJD"}],
            },
            {"role": "user", "parts": [{"functionResponse": {"name": "get_order", "id": "z", "response": {"s": 1}}}]},
            {"role": "model", "parts": [{"text": "전에 한 답"}]},
        )
    )
)
EVENTS = st.one_of(
    st.builds(MessageReceived, text=LONG),
    st.builds(answer, LONG, usage=st.just(Usage(prompt=700, answer=9))),
    REQUESTS,
    REQUESTS,
    st.builds(ModelFailed, reason=st.sampled_from(FailureReason)),
    st.builds(ToolsExecuted, results=st.lists(RESULTS, max_size=3).map(tuple)),
    st.builds(ObservationAppended, refusals=st.dictionaries(st.integers(0, 2), TEXT, max_size=2)),
    st.builds(TicketOpened, ticket=st.just(a_ticket()), notice=st.just("접수 번호는 HT-0000000001입니다.")),
    st.builds(TicketClosed, ticket_id=st.just("HT-0000000001"), reply=LONG),
    st.just(Resumed()),
    ADOPTED,
    st.builds(answer, TEXT, settled=st.just({"?": {"result": "done"}})),
)
"""Events in any order whatever: more than an engine writes."""

WHOLE_STEPS = st.builds(
    lambda request, results: (request, ToolsExecuted(results=tuple(results)), ObservationAppended()),
    REQUESTS,
    st.lists(RESULTS, max_size=3),
)
RUNS = st.builds(
    lambda text, steps, end: (MessageReceived(text=text), *(event for step in steps for event in step), end),
    LONG,
    st.lists(WHOLE_STEPS, max_size=5),
    st.one_of(
        st.builds(answer, LONG),
        st.builds(TicketOpened, ticket=st.just(a_ticket()), notice=st.just("접수 번호는 HT-0000000001입니다.")),
    ),
)
JOURNALS = st.one_of(
    st.lists(EVENTS, max_size=16),
    st.lists(RUNS, min_size=1, max_size=4).map(lambda runs: [event for run in runs for event in run]),
)


def journaled(events: Iterable[Event]) -> list[Step]:
    """The events as steps; an outcome that is settled belongs to a call that is in doubt, if there is one."""
    history, steps = History(), []
    for seq, event in enumerate(events, 1):
        settled = {call: {"result": "done"} for call in history.marks.doubtful or ["9.0"]}
        told = event.model_copy(update={"settled": settled}) if getattr(event, "settled", None) else event
        steps.append(Step(seq=seq, run=1, event=told, source="A", state="B"))
        history = history.fold(steps[-1])
    return steps
