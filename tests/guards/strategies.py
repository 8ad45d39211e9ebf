"""Journals of one conversation, as Hypothesis strategies: anything that a model, tools and people may do, in any order."""

from __future__ import annotations

from hypothesis import strategies as st

from haru_fsm.conversation import (
    MessageReceived,
    ModelFailed,
    ObservationAppended,
    ResultStatus,
    Resumed,
    Step,
    ToolResult,
    ToolsExecuted,
    Usage,
)
from haru_fsm.models.scripted import answer, calls

arguments = st.fixed_dictionaries({"q": st.sampled_from([1, 1.0, True, "a", " a ", "주문"])})
usages = st.builds(Usage, prompt=st.integers(0, 5), cost_usd=st.sampled_from([None, 0.0, 0.5]))
wanted = st.lists(st.tuples(st.sampled_from(["f", "g", "api.f"]), arguments), min_size=1, max_size=3)
results = st.builds(
    ToolResult,
    position=st.integers(0, 2),
    status=st.sampled_from(ResultStatus),
    response=st.sampled_from([{"result": 1}, {"result": 2}, {"result": 1, "note": "n"}, {"error": "no"}]),
    polling=st.booleans(),
    effect=st.booleans(),
    repeated=st.booleans(),
)
requests = st.builds(
    lambda wanted, text, requests, usage, took: calls(*wanted, text=text, requests=requests, usage=usage, took_ms=took),
    wanted,
    st.sampled_from(["", "다시 확인하겠습니다", "다시 확인하겠습니다.", "something else"]),
    st.integers(0, 3),
    usages,
    st.integers(0, 900),
)
events = st.one_of(
    requests,
    st.builds(lambda found: ToolsExecuted(results=tuple(found)), st.lists(results, max_size=3)),
    st.builds(ObservationAppended, refusals=st.sampled_from([{}, {0: "no"}])),
    st.builds(Resumed),
    st.builds(lambda usage: answer("접수번호는 T-1234 입니다.", usage=usage), usages),
    st.builds(lambda: ModelFailed(reason="empty")),
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
