"""An app for tests of the engine: the default table with three small tools, counted, and a clock that does not run."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Protocol, TypedDict

from haru_fsm import App, Engine, IdempotencyKey, Limits, NotDone, load_app, tool
from haru_fsm.clock import FakeClock
from haru_fsm.conversation import Conversation
from haru_fsm.models import Model
from haru_fsm.stores import Record, Store
from haru_fsm.stores.memory import MemoryStore

ROOT = Path(__file__).parent.parent.parent
_bare: dict[Limits, App] = {}


def bare(limits: Limits) -> App:
    """The repository's own app under these limits, loaded once."""
    if limits not in _bare:
        _bare[limits] = load_app(ROOT, limits=limits)
    return _bare[limits]


class Meddled(MemoryStore):
    """Something else happens just before the next write."""

    before: Callable[[], Awaitable[object]] | None = None

    async def append(self, conversation: Conversation, **place: Any) -> None:
        before, self.before = self.before, None
        if before is not None:
            await before()
        await super().append(conversation, **place)


class Makes(Protocol):
    """Whatever makes an app's tools."""

    def make(self, session: Any, /) -> list[Callable[..., Any]]: ...


class Where(TypedDict):
    """Who writes, and in which conversation: to be spread over `ask`."""

    customer_id: str
    conversation_id: str


class Tools:
    """Tools that count their runs. `behave` may replace what a tool does, by name."""

    def __init__(self, **behave: Callable[[str], Any]) -> None:
        self.runs: Counter[str] = Counter()
        self.behave = behave

    def _do(self, name: str, argument: str, default: Any) -> Any:
        self.runs[f"{name}({argument})"] += 1
        return self.behave[name](argument) if name in self.behave else default

    def make(self, _session: Any) -> list[Callable[..., Any]]:
        @tool(read_only=True)
        def look(what: str) -> Any:
            """Look something up."""
            return self._do("look", what, {"what": what, "status": "배송중"})

        @tool(read_only=False)
        def pay(what: str) -> Any:
            """Pay for something."""
            return self._do("pay", what, {"paid": what})

        @tool(read_only=False, idempotent=True)
        def book(what: str, key: Annotated[str, IdempotencyKey]) -> Any:
            """Book something under a key."""
            return self._do("book", what, {"booked": what, "key": key})

        return [look, pay, book]


WIPE = '''
import os
from haru_fsm import tool

def make_tools(session):
    @tool(read_only=False, destructive=True, approval=True)
    def wipe(what: str) -> dict[str, str]:
        """Wipe something out."""
        if log := os.environ.get("WIPED"):
            with open(log, "a", encoding="utf-8") as file:
                file.write(what + "\\n")
        return {"wiped": what}

    return [wipe]
'''


def wiping_app(folder: Path) -> Path:
    """An app in a folder: the default table, and one tool that waits for approval (WIPED names its log)."""
    app = folder / "shop"
    shutil.copytree(ROOT / "states", app / "states", ignore=shutil.ignore_patterns("__pycache__"))
    (app / "tools").mkdir()
    (app / "tools" / "__init__.py").write_text(WIPE, "utf-8")
    return app


def not_done(_argument: str) -> Any:
    raise NotDone("sold out")


def broken(_argument: str) -> Any:
    raise RuntimeError("wires crossed")


def engine(
    model: Model,
    *,
    tools: Makes | None = None,
    store: Store | None = None,
    clock: FakeClock | None = None,
    **limits: Any,
) -> Engine:
    """An engine on memory (or a given store) over the default table."""
    app = bare(Limits(**limits)).with_tools((tools or Tools()).make)
    app = App(workflow=app.workflow, make_tools=app.make_tools, system_prompt="하루", limits=app.limits)
    clock = clock or FakeClock()
    return Engine(app, model=model, store=store or MemoryStore(now=clock.now), clock=clock)


async def record_of(haru: Engine, conversation_id: str) -> Record:
    """Everything stored of a conversation that there is."""
    record = await haru.store.load(conversation_id)
    assert record is not None
    return record


def states() -> Any:
    """The states package of the loaded app."""
    bare(Limits())
    return next(
        module for name, module in sys.modules.items() if name.startswith("haru_app_") and name.endswith(".states")
    )
