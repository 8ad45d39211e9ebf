"""Apps and stores with one mistake each, for the kit to find."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from haru_fsm import App, Limits, Row, Session, Workflow, tool
from haru_fsm.conversation import (
    Conversation,
    Event,
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    Resumed,
    TicketClosed,
    TicketOpened,
    ToolsExecuted,
    ToolsRequested,
    Trip,
    last_request,
)
from haru_fsm.guards import AnyOf, Guard, InDoubt, ResumeBudget, StepBudget, UnfoundedTicketClaim
from haru_fsm.services import Services
from haru_fsm.stores import Outcome, Started
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.own_alphabet import made_up
from states.append_observation import append_observation
from states.await_model import await_model
from states.escalate_ticket import escalate_ticket
from tests.engine.shopless import Tools


async def execute_tools(conversation: Conversation, services: Services) -> ToolsExecuted:
    """The starter's work, for a table in which nothing waits for a person."""
    seq, request = last_request(conversation)
    return ToolsExecuted(results=await services.run_calls(conversation, seq, request.calls))


WORK: dict[str, Callable[..., Any]] = {
    "AWAIT_MODEL": await_model,
    "EXECUTE_TOOLS": execute_tools,
    "APPEND_OBSERVATION": append_observation,
    "ESCALATE_TICKET": escalate_ticket,
}
WORKING = ("AWAIT_MODEL", "EXECUTE_TOOLS", "APPEND_OBSERVATION")


def small_app(
    *,
    budget: Guard | None = None,
    unfit: Guard | None = None,
    work: dict[str, Callable[..., Any]] | None = None,
    make_tools: Callable[[Any], Any] | None = None,
) -> App:
    """A small table with one budget; sound unless it is made otherwise."""
    budget = budget or StepBudget(4)
    resting = ("DONE", "ESCALATE_TICKET")
    rows = [
        Row(MessageReceived, resting, "AWAIT_MODEL"),
        Row(ModelAnswered, "AWAIT_MODEL", "ESCALATE_TICKET", when=unfit or AnyOf(InDoubt(), UnfoundedTicketClaim())),
        Row(ModelAnswered, "AWAIT_MODEL", "DONE", rests=True),
        Row(ModelFailed, "AWAIT_MODEL", "ESCALATE_TICKET"),
        Row(ToolsRequested, "AWAIT_MODEL", "ESCALATE_TICKET", when=budget),
        Row(ToolsRequested, "AWAIT_MODEL", "EXECUTE_TOOLS"),
        Row(ToolsExecuted, "EXECUTE_TOOLS", "APPEND_OBSERVATION"),
        Row(ObservationAppended, "APPEND_OBSERVATION", "AWAIT_MODEL"),
        *(Row(Resumed, state, "ESCALATE_TICKET", when=ResumeBudget(5)) for state in WORKING),
        *(Row(Resumed, state, state) for state in WORKING),
        Row(TicketOpened, "ESCALATE_TICKET", "ESCALATE_TICKET", rests=True),
        Row(TicketClosed, resting, "DONE", rests=True),
    ]
    workflow = Workflow(rows, work={**WORK, **(work or {})}, initial="DONE")
    return App(workflow=workflow, make_tools=make_tools or Tools().make, limits=Limits(max_steps=4))


@dataclass(frozen=True)
class NeverTrips(StepBudget):
    """Promises a limit, and does not keep it."""

    def judge(self, memo: int, event: Event) -> Trip | None:
        return None


@dataclass(frozen=True)
class Never(Guard):
    """A guard on answers that lets everything through."""

    def judge(self, memo: Any, event: Event) -> Trip | None:
        return None


class LateClaims(MemoryStore):
    """A store that writes a claim down only when the outcome is known."""

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        return True if isinstance(what, Started) else await super().note(conversation_id, call, what)


class OpenClaims(MemoryStore):
    """A store that lets everybody have a claim, and keeps the last outcome."""

    async def note(self, conversation_id: str, call: str, what: Started | Outcome) -> bool:
        if isinstance(what, Outcome):
            self._ledgers[conversation_id].pop(call, None)
        await super().note(conversation_id, call, what)
        return True


class DropsSteps(MemoryStore):
    """A store that loses the middle one of three steps."""

    async def append(self, conversation: Conversation, **place: Any) -> None:
        await super().append(conversation, **place)
        steps = self._steps[conversation.conversation_id]
        self._steps[conversation.conversation_id] = tuple(step for step in steps if step.seq != 3)


class LosesTickets(MemoryStore):
    """A store that forgets to file."""

    def file_ticket(self, ticket: Any) -> Any:
        return ticket

    def _project(self, step: Any) -> None:
        return None


async def forgets_responses(
    conversation: Conversation, services: Services
) -> ModelAnswered | ToolsRequested | ModelFailed:
    """Work that sends a history without the last responses."""
    request = services.request(conversation)
    contents = request.contents
    if any("functionResponse" in part for part in contents[-1]["parts"]):
        request = dataclasses.replace(request, contents=contents[:-1])
    return await services.model.respond(request)


ORDERS = {"C1": {"HR10001": "책"}, "C2": {"HR20002": "이어폰"}}


def leaky(session: Session) -> list[Callable[..., Any]]:
    """Tools of which one looks into everybody's orders."""

    @tool(read_only=True)
    def my_orders() -> list[str]:
        """The customer's orders."""
        return list(ORDERS[session.customer_id])

    @tool(read_only=True)
    def order(order_id: str) -> dict[str, str]:
        """One order."""
        found = {number: item for orders in ORDERS.values() for number, item in orders.items()}
        return {"order": order_id, "item": found.get(order_id, "없음"), "others": " ".join(found)}

    return [my_orders, order]


def careful(session: Session) -> list[Callable[..., Any]]:
    """The same, as it should be."""

    @tool(read_only=True)
    def my_orders() -> list[str]:
        """The customer's orders."""
        return list(ORDERS[session.customer_id])

    @tool(read_only=True)
    def order(order_id: str) -> dict[str, str]:
        """One order."""
        return {"order": order_id, "item": ORDERS[session.customer_id].get(order_id, "없음")}

    return [my_orders, order]


def trusting(session: Session) -> list[Callable[..., Any]]:
    """A tool that gives an order to whoever knows its number, and nothing besides."""

    @tool(read_only=True)
    def my_orders() -> dict[str, str]:
        """The customer's orders."""
        return ORDERS[session.customer_id]

    @tool(read_only=True)
    def order(order_id: str) -> str:
        """One order."""
        return next((orders[order_id] for orders in ORDERS.values() if order_id in orders), "없음")

    return [my_orders, order]


def public(session: Session) -> list[Callable[..., Any]]:
    """Tools that give everybody the same, whatever they are sent."""
    my_orders, _ = trusting(session)

    @tool(read_only=True)
    def note(text: str) -> dict[str, str]:
        """Says it again."""
        return {"noted": text}

    @tool(read_only=True)
    def carrier(order_id: str) -> str:
        """The carrier of orders with such a number."""
        return "CJ대한통운" if order_id.startswith("HR") else "없음"

    @tool(read_only=True)
    def search(words: str) -> list[str]:
        """Rules that have to do with these words, for whoever asks."""
        return [rule for rule in ("배송은 2일 걸립니다.", "환불은 7일 안에 됩니다.") if words[-1:] in "12" + rule]

    @tool(read_only=True)
    def catalogue(words: str) -> list[str]:
        """What there is to buy, whatever one looks for."""
        return [item for orders in ORDERS.values() for item in orders.values()]

    return [my_orders, note, carrier, search, catalogue]


class Cart:
    """A shop in which one customer can empty another's cart."""

    def __init__(self) -> None:
        self.fill()

    def fill(self) -> None:
        """As it was in the beginning."""
        self.items = {"C1": ["AB12345"], "C2": ["CD67890"]}

    def make(self, session: Session) -> list[Callable[..., Any]]:
        """The tools."""

        @tool(read_only=True)
        def my_cart() -> list[str]:
            """The customer's cart."""
            return list(self.items[session.customer_id])

        @tool(read_only=False)
        def remove(item: str) -> str:
            """Take something out of the cart."""
            for items in self.items.values():
                if item in items:
                    items.remove(item)
            return "ok"

        return [my_cart, remove]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Weighed(Event):
    kind: Literal["weighed"] = "weighed"
    heavy: bool
    colour: Colour | None = None
    by: Literal["scale", "hand"] = "scale"
    grams: int = 7


def weighing(event: type[Event] = Weighed) -> App:
    """The small table, with a state of its own before the model is asked."""

    async def weigh(conversation: Conversation, services: Services) -> Event:
        return made_up(event)[0]

    weigh.__annotations__["return"] = event
    plain = small_app()
    rows = [
        Row(MessageReceived, ("DONE", "ESCALATE_TICKET"), "WEIGH"),
        Row(event, "WEIGH", "AWAIT_MODEL"),
        Row(Resumed, "WEIGH", "ESCALATE_TICKET", when=ResumeBudget(5)),
        Row(Resumed, "WEIGH", "WEIGH"),
        *plain.workflow.rows[1:],
    ]
    workflow = Workflow(rows, work={**plain.workflow.work, "WEIGH": weigh}, initial="DONE")
    return dataclasses.replace(plain, workflow=workflow)
