"""`haru prove`: what it says, what it keeps, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.apps import STATES, TOOLS, write_app
from tests.cli.conftest import Haru

CAREFUL = STATES.replace(
    'Row(ModelAnswered, "THINK", "DONE", rests=True)',
    'Row(ModelAnswered, "THINK", "TICKET", when=UnfoundedTicketClaim()), Row(ModelAnswered, "THINK", "DONE", rests=True)',
).replace("import StepBudget", "import StepBudget, UnfoundedTicketClaim")
CAREFUL = CAREFUL.replace("ticket = draft(", "ticket = services.open_ticket(draft(").replace(".now())", ".now()))")
# The last step of a run that was taken up again is `resumed`, and no request.
CAREFUL = CAREFUL.replace("request = conversation.steps[-1]", "seq, request = last_request(conversation)")
CAREFUL = CAREFUL.replace("request.seq, request.event.calls", "seq, request.calls").replace(
    "ToolsExecuted, ToolsRequested\n", "ToolsExecuted, ToolsRequested, last_request\n", 1
)
LAX = """
from dataclasses import dataclass
from haru_fsm.guards import StepBudget

@dataclass(frozen=True)
class Lax(StepBudget):
    def judge(self, memo, event):
        return None
""" + CAREFUL.replace("StepBudget(", "Lax(")


@pytest.fixture
def sound(empty: Path) -> Path:
    """A small app that keeps what it promises."""
    return write_app(empty / "sound", states=CAREFUL)


@pytest.fixture
def lax(empty: Path) -> Path:
    """The same app with a budget that does not keep what it promises."""
    return write_app(empty / "lax", states=LAX)


def test_a_sound_app_holds_at_random(haru: Haru, sound: Path) -> None:
    ended = haru("prove", "--minutes", "0.01", "--json", "--app", str(sound))
    assert ended.code == 0, ended.err + ended.out
    assert ended.json["broken"] is None
    assert ended.json["conversations"] >= 40
    assert set(ended.json["endings"]) == {"model_answered", "ticket_opened"}


def test_what_breaks_is_kept_and_can_be_had_again(haru: Haru, lax: Path, sound: Path, empty: Path) -> None:
    ended = haru("prove", "--minutes", "0.01", "--app", str(lax))
    assert ended.code == 1
    assert "every run ends: this does not hold" in ended.out
    [file] = (empty / "haru-findings").glob("*.json")
    assert f"haru prove --replay haru-findings/{file.name}" in ended.err
    assert json.loads(file.read_text("utf-8"))["promise"] == "every run ends"
    assert file.with_suffix(".jsonl").read_text("utf-8").count("\n") >= 3, "the model's side of it, as a cassette"

    again = haru("prove", "--replay", str(file), "--app", str(lax))
    assert again.code == 1
    assert "certificate allows" in again.out
    mended = haru("prove", "--replay", str(file), "--app", str(sound))
    assert (mended.code, mended.out) == (0, "It holds now.\n")


@pytest.mark.parametrize("how", [("--exhaustive", "--depth", "2"), ("--minutes", "0.01")])
def test_in_a_pipe_no_progress_is_drawn(haru: Haru, sound: Path, how: tuple[str, ...]) -> None:
    ended = haru("prove", *how, "--app", str(sound))
    assert (ended.code, ended.err) == (0, "")


def test_exhaustively_it_says_what_it_covered(haru: Haru) -> None:
    ended = haru("prove", "--exhaustive", "--depth", "4")
    assert ended.code == 0, ended.err
    assert "Every conversation of up to 4 choices" in ended.out
    assert "rows of the table that fired" in ended.out
    assert "ticket_closed" in ended.out, "a row that the alphabet cannot reach is named"
    assert "message_received" not in ended.out, "every conversation begins with it"
    assert "chosen from: 3 model_answered, 3 tools_requested, 1 model_failed\n" in ended.out, "no process dies here"


def test_exhaustively_a_broken_promise_is_found(haru: Haru, lax: Path) -> None:
    ended = haru("prove", "--exhaustive", "--depth", "6", "--max-steps", "2", "--app", str(lax))
    assert ended.code == 1
    assert "its certificate allows" in ended.err


def test_a_file_that_is_no_finding_is_refused(haru: Haru, empty: Path) -> None:
    (empty / "x.json").write_text("{}")
    ended = haru("prove", "--replay", "x.json")
    assert ended.code == 2
    assert ended.complaint.startswith("haru: x.json is no finding of the kit: promise: Field required; because: ")
    assert "input_value" not in ended.complaint


def test_findings_that_cannot_be_kept_are_told(haru: Haru, lax: Path, empty: Path) -> None:
    (empty / "file").write_text("")
    ended = haru("prove", "--minutes", "0.01", "--app", str(lax), "--findings", "file/findings")
    assert ended.code == 2
    assert "certificate allows" in ended.complaint
    assert "cannot be kept in file/findings" in ended.complaint


@pytest.mark.parametrize(
    "how", [("--kills", "--exhaustive"), ("--replay", "x.json", "--kills"), ("주문 취소해 주세요",)]
)
def test_what_would_be_ignored_is_refused(haru: Haru, how: tuple[str, ...]) -> None:
    ended = haru("prove", *how)
    assert ended.code == 2
    assert "--kills" in ended.complaint


WEIGHS = (
    CAREFUL.replace(
        'Row(MessageReceived, ("DONE", "TICKET"), "THINK")',
        'Row(MessageReceived, ("DONE", "TICKET"), "WEIGH"), Row(Weighed, "WEIGH", "THINK")',
    )
    .replace("work={", 'work={"WEIGH": weigh, ')
    .replace(
        "def workflow(",
        """from typing import Literal
from datetime import datetime
from haru_fsm.conversation import Event

class Weighed(Event):
    kind: Literal["weighed"] = "weighed"
    WHAT

async def weigh(conversation, services) -> Weighed:
    return Weighed()

def workflow(""",
        1,
    )
)


def test_exhaustively_what_cannot_be_seen_is_no_proof(haru: Haru, empty: Path) -> None:
    seen = write_app(empty / "seen", states=WEIGHS.replace("WHAT", "heavy: bool = False"))
    ended = haru("prove", "--exhaustive", "--depth", "3", "--app", str(seen))
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "Every promise held."), ended.err
    assert "chosen from: 2 weighed" in ended.out
    unseen = write_app(empty / "unseen", states=WEIGHS.replace("WHAT", "when: datetime"))
    ended = haru("prove", "--exhaustive", "--depth", "3", "--app", str(unseen))
    assert ended.code == 1
    assert "held" not in ended.out
    assert "Nothing was proved" in ended.complaint
    assert "There is no weighed to choose" in ended.complaint


KNOWN = (
    TOOLS
    + """
from haru_fsm import Session
from haru_fsm.errors import UnknownCustomer

class CustomerSession(Session):
    def __post_init__(self):
        if self.customer_id != "P1":
            raise UnknownCustomer(f"There is no patient {self.customer_id!r}.")
"""
)
RESUMABLE = (
    CAREFUL.replace("MessageReceived, ", "MessageReceived, Resumed, ", 1)
    .replace(
        'Row(TicketOpened, "TICKET"',
        'Row(Resumed, "THINK", "THINK", when=Not(ResumeBudget(5))), Row(Resumed, "THINK", "TICKET"), '
        'Row(Resumed, "ACT", "ACT", when=Not(ResumeBudget(5))), Row(Resumed, "ACT", "TICKET"), Row(TicketOpened, "TICKET"',
    )
    .replace("import StepBudget", "import Not, ResumeBudget, StepBudget")
)
STOCK = "stock of the lamp 재고 확인해 주세요"


def test_an_app_with_customers_of_its_own_is_attacked_by_its_example(haru: Haru, empty: Path) -> None:
    app = write_app(empty / "clinic", states=RESUMABLE, tools=KNOWN + '\nEXAMPLE_CUSTOMER = "P1"\n')
    for how in (("--minutes", "0.01"), ("--exhaustive", "--depth", "2"), ("--kills", STOCK)):
        ended = haru("prove", *how, "--app", str(app))
        assert ended.code == 0, (how, ended.out, ended.err)
        assert ("nothing was proved of effects" in ended.err) == (how[0] == "--kills"), ended.err


def test_an_app_that_nobody_can_ask_says_what_is_missing(haru: Haru, empty: Path) -> None:
    app = write_app(empty / "clinic", states=CAREFUL, tools=KNOWN)
    for how in (("--minutes", "0.01"), ("--exhaustive", "--depth", "2"), ("--kills",)):
        ended = haru("prove", *how, "--app", str(app))
        assert ended.code == 2, how
        assert 'Write EXAMPLE_CUSTOMER = "..." into tools/__init__.py' in ended.complaint
    unknown = haru("prove", "--kills", "--customer", "P9", "--app", str(app))
    assert (unknown.code, unknown.complaint) == (2, "haru: There is no patient 'P9'.")


def test_kills_are_under_the_app_s_own_limits(haru: Haru, empty: Path) -> None:
    app = write_app(empty / "clinic", states=RESUMABLE)
    asked = ("prove", "--kills", STOCK, "--json", "--app", str(app))
    free, tight = haru(*asked), haru(*asked, "--max-steps", "1")
    assert (free.code, tight.code) == (0, 0), tight.err
    assert free.json["effects"] == 0
    assert tight.json["cases"] < free.json["cases"], "at its first request's end the run is over"
