"""A workflow whose app changes while runs are open: small tables, with an event that only this app knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from haru_fsm import App, Engine, Limits, Row, Workflow, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import (
    Conversation,
    Event,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    TicketOpened,
    ToolsExecuted,
    ToolsRequested,
    last_request,
)
from haru_fsm.guards import StepBudget
from haru_fsm.models import Model
from haru_fsm.notices import KOREAN
from haru_fsm.services import Services
from haru_fsm.stores import Store
from haru_fsm.tickets import draft


class ParcelWeighed(Event):
    """A fact that the engine has no word for."""

    kind: Literal["parcel_weighed"] = "parcel_weighed"
    grams: int
    by: tuple[str, ...] = ()


async def weigh(_conversation: Conversation, _services: Services) -> ParcelWeighed:
    return ParcelWeighed(grams=1200, by=("저울 1",))


async def think(conversation: Conversation, services: Services) -> ModelAnswered | ToolsRequested | ModelFailed:
    return await services.model.respond(services.request(conversation))


async def act(conversation: Conversation, services: Services) -> ToolsExecuted:
    seq, request = last_request(conversation)
    return ToolsExecuted(results=await services.run_calls(conversation, seq, request.calls))


def escalate(conversation: Conversation, services: Services) -> TicketOpened:
    ticket = draft(conversation, category="기타", urgency="보통", at=services.clock.now())
    return TicketOpened(ticket=ticket, notice=KOREAN.ticket(ticket))


BASIC = (
    Row(MessageReceived, ("DONE", "TICKET"), "THINK"),
    Row(ModelAnswered, "THINK", "DONE", rests=True),
    Row(ModelFailed, "THINK", "TICKET"),
    Row(ToolsRequested, "THINK", "TICKET", when=StepBudget(6, visits=frozenset({"THINK"}))),
    Row(ToolsRequested, "THINK", "ACT"),
    Row(ToolsExecuted, "ACT", "THINK"),
    Row(TicketOpened, "TICKET", "TICKET", rests=True),
)
WORK: dict[str, Any] = {"THINK": think, "ACT": act, "TICKET": escalate}


def without_rows_for_resumed() -> Workflow:
    """A table that says nothing of `resumed`."""
    return Workflow(BASIC, work=WORK, initial="DONE")


def weighing() -> Workflow:
    """A table that weighs a parcel before it thinks."""
    rows = (
        Row(MessageReceived, ("DONE", "TICKET"), "WEIGH"),
        Row(ParcelWeighed, "WEIGH", "THINK"),
        *BASIC[1:],
    )
    return Workflow(rows, work={**WORK, "WEIGH": weigh}, initial="DONE")


def renamed() -> Workflow:
    """The small table with another name for EXECUTE_TOOLS' like."""
    rows = tuple(
        Row(row.event, _renamed(row.source), _renamed(row.target), when=row.when, rests=row.rests) for row in BASIC
    )
    return Workflow(rows, work={_renamed(state): work for state, work in WORK.items()}, initial="READY")


def _renamed(state: Any) -> Any:
    names = {"ACT": "DO", "DONE": "READY"}
    return tuple(map(_renamed, state)) if isinstance(state, tuple) else names.get(state, state)


def tools_of(*functions: Callable[..., Any]) -> Callable[[Any], list[Callable[..., Any]]]:
    return lambda _session: list(functions)


@tool(read_only=True)
def look(what: str) -> str:
    """Look something up."""
    return f"{what}: 배송중"


def engine(
    workflow: Workflow,
    model: Model,
    store: Store,
    *functions: Callable[..., Any],
    clock: FakeClock | None = None,
    **more: Any,
) -> Engine:
    app = App(workflow=workflow, make_tools=tools_of(*(functions or (look,))), limits=Limits(**more))
    return Engine(app, model=model, store=store, clock=clock or FakeClock())
