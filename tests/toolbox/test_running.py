"""Running: whatever a tool does, the call ends in time, and what comes late is told once. Field cases F057 to F062."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Annotated, Any

import pytest

from haru_fsm.clock import FakeClock, SystemClock
from haru_fsm.errors import NotDone
from haru_fsm.limits import Limits
from haru_fsm.toolbox import IdempotencyKey, Outcome, Prepared, Secret, Threads, tool
from haru_fsm.toolbox.attempts import _given_up
from haru_fsm.toolbox.tools import Tool
from tests.conftest import ROOT

SOON = 0.05
UNKNOWN = "It is not known whether it took place."


async def run(
    function: Callable[..., Any],
    args: dict[str, Any] | None = None,
    *,
    timeout_s: float | None = None,
    key: str | None = None,
    clock: Any = None,
    late: list[Outcome] | None = None,
    threads: Threads | None = None,
) -> Outcome:
    """A call through the whole way of a tool."""
    each = Tool("work", function, Limits(), threads or Threads(8))
    prepared = each.prepare(args or {})
    assert isinstance(prepared, Prepared), prepared
    on_late = None if late is None else late.append
    return await each.run(prepared, timeout_s=timeout_s, key=key, clock=clock or FakeClock(), on_late=on_late)


async def until(condition: Callable[[], Any]) -> None:
    """Give threads and tasks the little time that they need."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


# --------------------------------------------------------------------------- values and errors


async def test_sync_and_async_tools_return_their_value() -> None:
    def plain(order_id: str) -> str:
        """Doc."""
        return order_id

    async def later(order_id: str) -> str:
        """Doc."""
        await asyncio.sleep(0)
        return order_id

    def handed_on(order_id: str) -> Awaitable[str]:
        """Doc."""
        return later(order_id)

    def many(order_id: str) -> Iterator[str]:
        """Doc."""
        yield from order_id

    async def many_later(order_id: str) -> AsyncIterator[str]:
        """Doc."""
        for letter in order_id:
            yield letter

    @functools.wraps(later)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return later(*args, **kwargs)

    class Callable_:
        """Doc."""

        async def __call__(self, order_id: str) -> str:
            return order_id

    for function in (plain, later, handed_on, wrapped, Callable_(), functools.partial(later)):
        assert await run(function, {"order_id": "HR"}) == Outcome("returned", {"result": "HR"})
    for generator in (many, many_later):
        assert await run(generator, {"order_id": "HR"}) == Outcome("returned", {"result": ["H", "R"]})


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (RuntimeError("courier api 500"), "raised", "RuntimeError: courier api 500"),
        (NotDone("이미 배송중이라 취소할 수 없습니다."), "not_done", "이미 배송중이라 취소할 수 없습니다."),
        (SystemExit(3), "raised", "SystemExit: 3"),
        (asyncio.CancelledError("inner"), "cancelled", "CancelledError: inner"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_f057_what_a_tool_raises_is_an_error_without_a_traceback(
    error: BaseException, kind: str, text: str
) -> None:
    @tool(read_only=True)
    def fail() -> None:
        """Doc."""
        raise error

    @tool(read_only=True)
    async def fail_later() -> None:
        """Doc."""
        await asyncio.sleep(0)
        raise error

    @tool(read_only=True)
    def fail_halfway() -> Iterator[int]:
        """Doc."""
        yield 1
        raise error

    for function in (fail, fail_halfway):
        outcome = await run(function)
        assert outcome.kind == kind
        assert outcome.response == {"error": text}
    outcome = await run(fail_later)
    assert outcome.kind == kind
    assert outcome.response["error"].startswith(text.partition(":")[0])


async def test_an_error_of_a_tool_that_may_have_acted_says_that_nobody_knows() -> None:
    def fail() -> None:
        """Doc."""
        raise RuntimeError("boom")

    assert (await run(fail)).response == {"error": "RuntimeError: boom", "note": UNKNOWN}


async def test_siblings_keep_their_results() -> None:
    @tool(read_only=True)
    def get() -> str:
        """Doc."""
        return "배송중"

    @tool(read_only=True)
    async def cancelled() -> str:
        """Doc."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)
        return "never"

    outcomes = await asyncio.gather(*(run(function) for function in (get, cancelled, get)))
    assert [outcome.kind for outcome in outcomes] == ["returned", "cancelled", "returned"]


async def test_time_is_measured_with_the_clock_that_was_handed_in() -> None:
    clock = FakeClock()

    async def work() -> None:
        """Doc."""
        await clock.sleep(1.5)

    assert (await run(work, clock=clock)).took_ms == 1500


async def test_context_variables_are_carried_along() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")
    name.set("haru")

    def plain() -> str:
        """Doc."""
        return name.get()

    async def later() -> str:
        """Doc."""
        return name.get()

    def handed_on() -> Awaitable[str]:
        """Doc."""
        return later()

    for function in (plain, later, handed_on):
        assert (await run(function)).response == {"result": "haru"}


async def test_the_key_is_passed_by_the_engine() -> None:
    def act(key: Annotated[str, IdempotencyKey]) -> str:
        """Doc."""
        return key

    def maybe(key: Annotated[str | None, IdempotencyKey] = None) -> str | None:
        """Doc."""
        return key

    assert (await run(act, key="c/1.0")).response == {"result": "c/1.0"}
    assert (await run(maybe, key="c/1.0")).response == {"result": "c/1.0"}
    assert (await run(maybe)).response == {"result": None}
    assert (await run(act)).kind == "not_done"


async def test_secrets_of_parameters_are_cut_out_of_errors_and_results() -> None:
    def call(order_id: str, token: Annotated[str, Secret] = "sk-12345") -> str:
        """Doc."""
        if order_id == "bad":
            raise RuntimeError(f"401: {token} for {order_id}")
        return f"https://x/?{token}"

    assert (await run(call, {"order_id": "bad"})).response["error"] == "RuntimeError: 401: [secret] for bad"
    bound = functools.partial(call, token="other-67890")
    assert (await run(bound, {"order_id": "ok"})).response == {"result": "https://x/?[secret]"}


async def test_the_log_has_an_error_s_traceback_and_never_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    def call(order_id: str, token: Annotated[str, Secret] = "sk-12345") -> str:
        """Doc."""
        raise RuntimeError(f"401: {token} for {order_id}")

    def plain(order_id: str) -> str:
        """Doc."""
        raise RuntimeError(f"404: {order_id}")

    caplog.set_level("DEBUG", logger="haru_fsm.toolbox")
    await run(call, {"order_id": "HR1"})
    assert "401: [secret] for HR1" in caplog.text
    assert "sk-12345" not in caplog.text
    await run(plain, {"order_id": "HR2"})
    assert "Traceback" in caplog.text


# --------------------------------------------------------------------------- time-outs


@tool(read_only=True, timeout_s=SOON)
async def hang() -> None:
    """Doc."""
    await asyncio.Event().wait()


async def test_f059_a_tool_that_never_returns_is_given_up() -> None:
    outcome = await run(hang)
    assert outcome.kind == "timed_out"
    assert outcome.response == {"error": "timeout after 0.05s"}


async def test_f059_its_fallback_stands_for_it_and_is_marked() -> None:
    late = {"location": "조회 지연", "source": "fallback"}

    @tool(read_only=True, timeout_s=SOON, fallback=late)
    async def track() -> None:
        """Doc."""
        await asyncio.Event().wait()

    outcome = await run(track)
    assert (outcome.kind, outcome.fallback_used) == ("returned", True)
    assert outcome.response == {
        "result": late,
        "note": "This is a fallback value: the tool did not answer (timeout after 0.05s).",
    }


async def test_a_fallback_does_not_replace_a_value_or_a_reason() -> None:
    @tool(read_only=True, fallback="fallback")
    def answer(word: str) -> str:
        """Doc."""
        if word == "no":
            raise NotDone("no such order")
        return word

    assert (await run(answer, {"word": "yes"})).response == {"result": "yes"}
    assert (await run(answer, {"word": "no"})).response == {"error": "no such order"}


async def test_a_fallback_does_not_hide_that_an_effect_is_unknown() -> None:
    @tool(fallback="fallback")
    def act() -> None:
        """Doc."""
        raise RuntimeError("boom")

    outcome = await run(act)
    assert (outcome.kind, outcome.response["result"], outcome.fallback_used) == ("raised", "fallback", True)


async def test_f061_a_late_outcome_of_a_thread_is_told_once() -> None:
    go, ledger, late = threading.Event(), [], list[Outcome]()

    @tool(read_only=False, timeout_s=SOON)
    def refund() -> str:
        """Doc."""
        go.wait(5)
        ledger.append("RF-1")
        return "RF-1"

    outcome = await run(refund, late=late)
    assert outcome.kind == "timed_out"
    assert outcome.response == {"error": "timeout after 0.05s", "note": UNKNOWN}
    assert (ledger, late) == ([], [])
    go.set()
    await until(lambda: late)
    await asyncio.sleep(0.01)
    assert ledger == ["RF-1"]
    assert [(each.kind, each.response) for each in late] == [("returned", {"result": "RF-1"})]


@pytest.mark.parametrize(
    ("error", "kind"), [(None, "returned"), (NotDone("no"), "not_done"), (ValueError("x"), "raised")], ids=str
)
async def test_a_late_outcome_of_a_task_that_swallows_its_cancellation(error: Exception | None, kind: str) -> None:
    go, late = asyncio.Event(), list[Outcome]()

    @tool(read_only=False, timeout_s=SOON)
    async def stubborn() -> str:
        """Doc."""
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        if error is not None:
            raise error
        return "done after all"

    assert (await run(stubborn, late=late)).kind == "timed_out"
    go.set()
    await until(lambda: late)
    assert [each.kind for each in late] == [kind]
    await until(lambda: not _given_up)


async def test_a_task_that_obeys_its_cancellation_brings_no_news() -> None:
    late = list[Outcome]()
    assert (await run(hang, late=late)).kind == "timed_out"
    await until(lambda: not _given_up)
    assert late == []


async def test_whoever_takes_a_late_outcome_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()

    @tool(timeout_s=SOON)
    def act() -> None:
        """Doc."""
        go.wait(5)

    def fail(_: Outcome) -> None:
        raise RuntimeError("the store is gone")

    each = Tool("act", act, Limits(), Threads(1))
    prepared = each.prepare({})
    assert isinstance(prepared, Prepared)
    await each.run(prepared, timeout_s=None, key=None, clock=FakeClock(), on_late=fail)
    go.set()
    await until(lambda: "late outcome" in caplog.text)


async def test_the_rest_of_the_runs_deadline_bounds_the_call() -> None:
    @tool(read_only=True, timeout_s=60)
    async def slow() -> None:
        """Doc."""
        await asyncio.Event().wait()

    assert (await run(slow, timeout_s=SOON)).response == {"error": "timeout after 0.05s"}
    outcome = await run(slow, timeout_s=0)
    assert (outcome.kind, outcome.response) == ("not_done", {"error": "It was not begun: no time was left."})


async def test_outer_cancellation_comes_through_and_the_outcome_is_told_late() -> None:
    go, begun, late = threading.Event(), threading.Event(), list[Outcome]()

    @tool(read_only=False)
    def act() -> str:
        """Doc."""
        begun.set()
        go.wait(5)
        return "acted"

    task = asyncio.create_task(run(act, late=late))
    await until(begun.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert late == []
    go.set()
    await until(lambda: late)
    assert late[0].response == {"result": "acted"}


async def test_outer_cancellation_in_the_very_moment_of_the_end_loses_nothing() -> None:
    late = list[Outcome]()
    task: asyncio.Task[Outcome]

    @tool(read_only=False)
    async def act() -> str:
        """Doc."""
        asyncio.get_running_loop().call_soon(task.cancel)
        return "acted"

    task = asyncio.create_task(run(act, late=late))
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: late)
    assert [each.response for each in late] == [{"result": "acted"}]


async def test_outer_cancellation_reaches_an_async_tool() -> None:
    stopped = asyncio.Event()

    async def work() -> None:
        """Doc."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    task = asyncio.create_task(run(work))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(stopped.wait(), 1)


# --------------------------------------------------------------------------- again


async def test_read_only_tools_are_retried_with_growing_waits() -> None:
    clock, calls = FakeClock(), []

    @tool(read_only=True, retries=3)
    def flaky() -> str:
        """Doc."""
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("503")
        return "ok"

    outcome = await run(flaky, clock=clock)
    assert (outcome.kind, outcome.attempts, clock.slept) == ("returned", 3, [0.2, 0.4])
    assert outcome.took_ms == 600


async def test_not_done_is_an_answer_and_not_retried() -> None:
    clock = FakeClock()

    @tool(idempotent=True, retries=3)
    def refuse() -> None:
        """Doc."""
        raise NotDone("no")

    outcome = await run(refuse, clock=clock)
    assert (outcome.attempts, clock.slept) == (1, [])


async def test_each_attempt_gets_arguments_of_its_own() -> None:
    seen = []

    @tool(read_only=True, retries=1)
    def spoil(ids: list[int]) -> None:
        """Doc."""
        seen.append(list(ids))
        ids.clear()
        raise RuntimeError("boom")

    await run(spoil, {"ids": [1, 2]})
    assert seen == [[1, 2], [1, 2]]


async def test_there_is_no_retry_beyond_the_deadline() -> None:
    clock = FakeClock()

    @tool(read_only=True, retries=5)
    def fail() -> None:
        """Doc."""
        raise RuntimeError("boom")

    outcome = await run(fail, clock=clock, timeout_s=0.5)
    assert (outcome.kind, outcome.attempts, clock.slept) == ("raised", 2, [0.2])


async def test_an_earlier_attempt_that_comes_back_is_the_outcome() -> None:
    go, end, calls, late = threading.Event(), threading.Event(), [], list[Outcome]()

    @tool(idempotent=True, retries=1, timeout_s=SOON)
    def act() -> str:
        """Doc."""
        calls.append(1)
        if len(calls) == 1:
            go.wait(5)
            return "the first"
        go.set()
        end.wait(5)
        return "the second"

    threads = Threads(2)
    outcome = await run(act, late=late, threads=threads)
    assert (outcome.kind, outcome.response, outcome.attempts) == ("returned", {"result": "the first"}, 2)
    end.set()
    await until(lambda: threads._wanted == threads._stuck == 0)
    await asyncio.sleep(0)
    assert late == []


async def test_a_second_attempt_that_did_nothing_does_not_deny_the_first() -> None:
    calls = []

    @tool(idempotent=True, retries=1)
    def act() -> None:
        """Doc."""
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("lost after sending")
        raise NotDone("cannot do it now")

    outcome = await run(act)
    assert (outcome.kind, outcome.response["error"]) == ("raised", "ConnectionError: lost after sending")


# --------------------------------------------------------------------------- threads


async def test_f062_plain_functions_run_side_by_side() -> None:
    barrier = threading.Barrier(50)

    @tool(read_only=True)
    def meet() -> int:
        """Doc."""
        return barrier.wait(5)

    threads = Threads(50)
    outcomes = await asyncio.gather(*(run(meet, threads=threads) for _ in range(50)))
    assert {outcome.kind for outcome in outcomes} == {"returned"}


async def test_f062_the_loop_goes_on_while_a_plain_function_blocks() -> None:
    begun, go = threading.Event(), threading.Event()

    @tool(read_only=True)
    def block() -> bool:
        """Doc."""
        begun.set()
        return go.wait(5)

    calls = [asyncio.create_task(run(block)) for _ in range(5)]
    await until(begun.is_set)
    for _ in range(100):
        await asyncio.sleep(0)
    go.set()  # nobody but the loop sets it: had it been blocked, the tools would have waited in vain
    assert [(await call).response for call in calls] == [{"result": True}] * 5


async def test_a_call_that_found_no_thread_was_certainly_not_begun() -> None:
    go, ran = threading.Event(), []
    threads = Threads(1, most=1)

    @tool(read_only=False, timeout_s=SOON)
    def act(name: str) -> None:
        """Doc."""
        ran.append(name)
        go.wait(5)

    late = list[Outcome]()
    first = await run(act, {"name": "first"}, threads=threads, late=late)
    second = await run(act, {"name": "second"}, threads=threads, late=late)
    assert (first.kind, second.kind) == ("timed_out", "not_done")
    assert "not begun" in second.response["error"]
    go.set()
    await until(lambda: late)
    await asyncio.sleep(0.01)
    assert ran == ["first"]
    assert [each.kind for each in late] == ["returned"]


@pytest.mark.parametrize(("read_only", "kind", "ran"), [(False, "not_done", []), (True, "returned", ["second"])])
async def test_what_acts_begins_in_time_or_never(read_only: bool, kind: str, ran: list[str]) -> None:
    """What is cut short while it acts is in doubt. So it is not begun when most of its time has gone by in waiting."""
    go, threads, begun = threading.Event(), Threads(1), list[str]()

    @tool(read_only=False, timeout_s=0.2)
    def hang() -> None:
        """Doc."""
        go.wait(5)

    @tool(read_only=read_only, timeout_s=0.25)
    def second() -> None:
        """Doc."""
        begun.append("second")

    first = asyncio.create_task(run(hang, threads=threads))
    await until(lambda: threads._threads)
    outcome = await run(second, threads=threads)
    assert (outcome.kind, begun) == (kind, ran)
    assert read_only or "It was not begun: too many other calls were running" in outcome.response["error"]
    assert (await first).kind == "timed_out"
    go.set()


async def test_hung_calls_do_not_starve_the_others() -> None:
    go, threads = threading.Event(), Threads(2)

    @tool(read_only=True, timeout_s=SOON)
    def hang_in_thread() -> None:
        """Doc."""
        go.wait(10)

    @tool(read_only=True)
    def quick() -> str:
        """Doc."""
        return "ok"

    hung = await asyncio.gather(*(run(hang_in_thread, threads=threads) for _ in range(4)))
    assert "timed_out" in {outcome.kind for outcome in hung}
    assert (await run(quick, threads=threads)).kind == "returned"
    go.set()


def test_neither_a_hung_thread_nor_a_stubborn_task_keeps_the_process() -> None:
    script = textwrap.dedent(
        """
        import asyncio, threading
        from haru_fsm.clock import SystemClock
        from haru_fsm.toolbox.tools import Tool
        from haru_fsm.toolbox import tool

        @tool(timeout_s=0.05)
        def hang() -> None:
            "Doc."
            threading.Event().wait()

        @tool(timeout_s=0.05)
        async def stubborn() -> None:
            "Doc."
            while True:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    pass

        @tool(timeout_s=0.05)
        def handed_on():
            "Doc."
            return stubborn()

        async def main() -> None:
            for function in (hang, stubborn, handed_on):
                each = Tool("work", function)
                outcome = await each.run(each.prepare({}), timeout_s=None, key=None, clock=SystemClock(), on_late=None)
                print(outcome.kind)

        asyncio.run(main())
        print("over")
        """
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20, cwd=ROOT, check=False
    )
    assert ended.stdout.split() == ["timed_out", "timed_out", "timed_out", "over"]
    assert ended.returncode == 0
    assert "destroyed" not in ended.stderr


async def test_with_the_real_clock() -> None:
    @tool(read_only=True)
    async def nap() -> str:
        """Doc."""
        await asyncio.sleep(0.02)
        return "ok"

    outcome = await run(nap, clock=SystemClock())
    assert 15 <= outcome.took_ms < 1000
    json.dumps(outcome.response)
