"""Small Haru apps, written into a folder."""

from __future__ import annotations

from pathlib import Path

TOOLS = '''
from haru_fsm import tool

def make_tools(session):
    @tool(read_only=True)
    def get_stock(item: str) -> int:
        """How many of an item are in stock.

        Args:
            item: Its name.
        """
        if item == "missing":
            raise LookupError("no such item")
        return len(item)

    return [get_stock]
'''
STATES = """
from haru_fsm import Row, Workflow
from haru_fsm.conversation import MessageReceived, ModelAnswered, ModelFailed, TicketOpened, ToolsExecuted, ToolsRequested, last_request
from haru_fsm.guards import StepBudget

async def think(conversation, services) -> ModelAnswered | ToolsRequested | ModelFailed:
    return await services.model.respond(services.request(conversation))

async def act(conversation, services) -> ToolsExecuted:
    seq, request = last_request(conversation)
    return ToolsExecuted(results=await services.run_calls(conversation, seq, request.calls))

def escalate(conversation, services) -> TicketOpened:
    from haru_fsm.notices import KOREAN
    from haru_fsm.tickets import draft
    ticket = draft(conversation, category="other", urgency="normal", at=services.clock.now())
    return TicketOpened(ticket=ticket, notice=KOREAN.ticket(ticket))

def workflow(limits):
    return Workflow(
        [
            Row(MessageReceived, ("DONE", "TICKET"), "THINK"),
            Row(ModelAnswered, "THINK", "DONE", rests=True),
            Row(ModelFailed, "THINK", "TICKET"),
            Row(ToolsRequested, "THINK", "TICKET", when=StepBudget(limits.max_steps, visits=frozenset({"THINK"}))),
            Row(ToolsRequested, "THINK", "ACT"),
            Row(ToolsExecuted, "ACT", "THINK"),
            Row(TicketOpened, "TICKET", "TICKET", rests=True),
        ],
        work={"THINK": think, "ACT": act, "TICKET": escalate},
        initial="DONE",
    )
"""


def write_app(folder: Path, *, states: str | None = STATES, tools: str | None = TOOLS) -> Path:
    """An app of these two modules; None leaves one out."""
    for part, code in (("states", states), ("tools", tools)):
        if code is not None:
            (folder / part).mkdir(parents=True)
            (folder / part / "__init__.py").write_text(code, "utf-8")
    return folder
