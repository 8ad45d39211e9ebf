"""Journals of one conversation, as Hypothesis strategies: anything that a model, tools and people may do, in any order."""

from __future__ import annotations

from hypothesis import strategies as st

from haru_fsm.conversation import (
    ApprovalRequested,
    HistoryAdopted,
    MessageHeld,
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

arguments = st.fixed_dictionaries({"q": st.sampled_from([1, 1.0, 2, True, "a", " a ", "주문"])})
usages = st.builds(Usage, prompt=st.integers(0, 5), cost_usd=st.sampled_from([None, 0.0, 0.5]))
wanted = st.lists(st.tuples(st.sampled_from(["f", "g", "api.f"]), arguments), min_size=1, max_size=3)
results = st.builds(
    ToolResult,
    position=st.integers(0, 2),
    status=st.sampled_from(ResultStatus),
    response=st.sampled_from([{"result": 1}, {"result": []}, {"result": 1, "note": "n"}, {"error": "no"}]),
    polling=st.booleans(),
    effect=st.booleans(),
    repeated=st.booleans(),
)
begun = st.lists(st.sampled_from(["1.0", "2.0", "2.1", "3.0"]), max_size=2).map(tuple)
"""Calls as the ledger names them; some are of requests that the journal holds."""
requests = st.builds(
    lambda wanted, text, requests, usage, took: calls(*wanted, text=text, requests=requests, usage=usage, took_ms=took),
    wanted,
    st.sampled_from(["", "다시 확인하겠습니다", "다시 확인하겠습니다.", "something else"]),
    st.integers(0, 3),
    usages,
    st.integers(0, 900),
)
answers = st.builds(
    lambda usage, settled: answer(
        "접수번호는 T-1234 입니다.", usage=usage, settled={call: {"result": 1} for call in settled}
    ),
    usages,
    begun,
)
events = st.one_of(
    requests,
    st.builds(lambda found: ToolsExecuted(results=tuple(found)), st.lists(results, max_size=3)),
    st.builds(ObservationAppended, refusals=st.sampled_from([{}, {0: "no"}])),
    st.builds(Resumed),
    st.builds(Resumed, begun=begun),
    answers,
    st.builds(lambda: ModelFailed(reason="empty")),
    st.builds(
        lambda found: ApprovalRequested(waiting=(), results=tuple(found)), st.lists(results, min_size=1, max_size=3)
    ),
    st.builds(lambda: TicketOpened(ticket=a_ticket(ticket_id="T-1234"), notice="접수 번호는 T-1234입니다.")),
    st.builds(lambda: TicketClosed(ticket_id="T-1234", reply="접수번호 T-1234 건을 처리했습니다.")),
    st.builds(lambda: MessageHeld(text="T-1234")),
    st.builds(lambda: HistoryAdopted(contents=({"role": "user", "parts": [{"text": "T-1234"}]},))),
    st.builds(lambda: MessageReceived(text="T-1234")),
)


@st.composite
def journals(draw: st.DrawFn, max_size: int = 24) -> list[Step]:
    """Steps in a row. Runs begin with messages; counted guards were asked now and then."""
    steps, run = list[Step](), 1
    for seq, event in enumerate(draw(st.lists(events, min_size=1, max_size=max_size)), 1):
        run += isinstance(event, MessageReceived)
        asked = draw(st.sampled_from([(), ("Nudged",), ("ResumeBudget", "ApprovalBudget")]))
        steps.append(Step(seq=seq, run=run, event=event, source="AWAIT_MODEL", state="X", asked=asked))
    return steps
