"""Tools as people really wrap them: what a decorator, a task group or a database gives is read as what it stands for."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from haru_fsm.conversation import ResultStatus, executed
from haru_fsm.errors import NotDone
from haru_fsm.models.scripted import ScriptedModel
from haru_fsm.toolbox import Outcome
from haru_fsm.toolbox.results import response
from tests.engine.shopless import Tools, engine
from tests.toolbox.test_running import run


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that knows nothing of async functions, as most do."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


async def letters(order_id: str) -> AsyncIterator[str]:
    """Doc."""
    for letter in order_id:
        await asyncio.sleep(0)
        yield letter


class Stream:
    """Something that is only iterable, as SDKs' streams are."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __aiter__(self) -> AsyncIterator[str]:
        return letters(self.text)


async def of_a_coroutine(order_id: str) -> Any:
    """Doc."""
    return letters(order_id)


def of_a_stream(order_id: str) -> Any:
    """Doc."""
    return Stream(order_id)


async def twice_later(order_id: str) -> Any:
    """Doc."""

    async def inner() -> list[str]:
        return list(order_id)

    return inner()


POOL = ThreadPoolExecutor(1)


def handed_on(order_id: str) -> Any:
    """Doc."""
    return POOL.submit(list, order_id)


async def handed_on_later(order_id: str) -> Any:
    """Doc."""
    return POOL.submit(handed_on, order_id)


@pytest.mark.parametrize(
    "function",
    [
        letters,
        logged(letters),
        logged(logged(letters)),
        of_a_coroutine,
        of_a_stream,
        logged(twice_later),
        handed_on,
        handed_on_later,
    ],
)
async def test_what_has_to_be_waited_for_is_waited_for(function: Callable[..., Any]) -> None:
    """It had been given to the model as `<async_generator object letters>`, and nothing had run."""
    assert await run(function, {"order_id": "HR"}) == Outcome("returned", {"result": ["H", "R"]})


async def test_an_effect_that_a_pool_has_not_finished_is_not_said_to_be_done() -> None:
    """The model had read `<Future state=running>`, as the result of a payment."""
    paid = threading.Event()

    def refused() -> None:
        paid.wait()
        raise ConnectionError("refused")

    def pay() -> Any:
        """Doc."""
        return POOL.submit(refused)

    outcome = asyncio.ensure_future(run(pay))
    await asyncio.sleep(0)
    paid.set()
    assert (await outcome).kind == "raised"


async def test_a_promise_without_end_ends() -> None:
    class Later:
        def __await__(self) -> Any:
            return self
            yield

    def for_ever() -> Any:
        """Doc."""
        return Later()

    outcome = await run(for_ever)
    assert (outcome.kind, outcome.response["result"]) == ("returned", "<Later>")


async def test_what_nobody_awaited_inside_of_a_value_is_said() -> None:
    answer = response({"now": 1, "later": asyncio.sleep(0)})
    assert answer["result"] == {"now": 1, "later": "<sleep>"}
    assert "sleep has no JSON form" in answer["note"]


async def test_the_errors_of_a_group_are_told_and_not_their_number() -> None:
    async def down(name: str) -> None:
        raise ConnectionError(f"{name} refused")

    async def both() -> None:
        """Doc."""
        async with asyncio.TaskGroup() as group:
            group.create_task(down("db"))
            group.create_task(down("cache"))

    outcome = await run(both)
    assert (outcome.kind, outcome.response["error"].split(". ")[0]) == (
        "raised",
        "ConnectionError: db refused; ConnectionError: cache refused",
    )


def test_a_row_of_a_database_keeps_the_names_of_its_columns() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.row_factory = sqlite3.Row
        row = connection.execute("select 'HR1' as order_id, 12900 as amount").fetchone()
        twins = connection.execute("select 1 as id, 2 as id").fetchone()
    connection.close()
    assert response([row])["result"] == [{"order_id": "HR1", "amount": 12900}]
    assert response(twins)["result"] == [1, 2]


def test_keys_that_are_no_names_of_the_items_are_left_out() -> None:
    class Sheet(list[int]):
        def keys(self) -> list[str]:
            return ["the lock's"]

    assert response(Sheet([1, 2])) == {"result": [1, 2]}
    assert response(((), [])) == {"result": [[], []]}


async def test_a_refusal_that_is_returned_is_one() -> None:
    """As a success it would be an effect that took place, in the ledger and for the model."""
    tools = Tools(pay=lambda _what: NotDone("이미 발송되었습니다."))
    async with engine(ScriptedModel([[("pay", {"what": "A"})], "이미 발송되었습니다."]), tools=tools) as haru:
        asked = await haru.ask("취소해 주세요", customer_id="C1", conversation_id="c-1")
        record = await haru.store.load("c-1")
    assert record is not None
    ((_, _, result),) = executed(record.steps)
    assert (result.status, result.response) == (ResultStatus.NOT_DONE, {"error": "이미 발송되었습니다."})
    outcome = record.ledger["2.0"].outcome
    assert outcome is not None
    assert outcome.status is ResultStatus.NOT_DONE
    assert asked.ticket is None
