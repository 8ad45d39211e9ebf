"""The pool: bounded, grown only as needed, and with room made for calls that hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from haru_fsm.toolbox.threads import Job, Threads


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def blocked(threads: Threads, count: int) -> tuple[threading.Event, list[Job], list[int]]:
    """Jobs that wait for the event; the list grows as they end."""
    go, ended = threading.Event(), list[int]()

    def work() -> None:
        go.wait(10)
        ended.append(1)

    return go, [threads.submit(work) for _ in range(count)], ended


def test_no_thread_before_the_first_job_and_no_more_than_needed() -> None:
    threads = Threads(5)
    assert threads._threads == 0
    for _ in range(10):
        done = threading.Event()
        threads.submit(done.set)
        assert done.wait(5)
        until(lambda: threads._wanted == 0)
    assert threads._threads == 1


def test_no_more_run_at_a_time_than_its_size() -> None:
    threads = Threads(3)
    go, jobs, ended = blocked(threads, 8)
    assert threads._threads == 3
    go.set()
    until(lambda: len(ended) == 8)
    until(lambda: threads._wanted == 0)
    assert threads._threads == 3
    assert not any(threads.give_up(job) for job in jobs), "what is over had begun"


def test_a_job_that_is_given_up_before_it_began_never_begins() -> None:
    threads = Threads(1)
    go, jobs, ended = blocked(threads, 3)
    assert threads.give_up(jobs[1])
    go.set()
    until(lambda: len(ended) == 2)
    until(lambda: threads._wanted == 0)


def test_a_job_is_taken_back_only_before_it_began() -> None:
    threads = Threads(1)
    go, jobs, ended = blocked(threads, 3)
    until(lambda: jobs[0].state.name == "RUNNING")
    assert [threads.take_back(job) for job in jobs] == [False, True, True]
    assert not threads.take_back(jobs[1])
    go.set()
    until(lambda: threads._wanted == 0)
    assert len(ended) == 1


def test_a_hung_thread_is_replaced_and_retires_when_it_comes_back() -> None:
    threads = Threads(2, most=4)
    go, jobs, ended = blocked(threads, 2)
    until(lambda: all(job.state.name != "WAITING" for job in jobs))
    for job in jobs:
        assert not threads.give_up(job)
    assert threads._stuck == 2
    done = threading.Event()
    threads.submit(done.set)
    assert done.wait(5), "there is a thread for the next one"
    more, _, _ = blocked(threads, 2)
    assert threads._threads <= 4
    go.set()
    until(lambda: len(ended) == 2)
    more.set()
    until(lambda: threads._stuck == 0 and threads._wanted == 0)
    until(lambda: threads._threads == 2)


def test_the_second_bound_holds() -> None:
    threads = Threads(1, most=2)
    go, jobs, _ = blocked(threads, 1)
    until(lambda: jobs[0].state.name == "RUNNING")
    threads.give_up(jobs[0])
    second, others, _ = blocked(threads, 1)
    until(lambda: others[0].state.name == "RUNNING")
    threads.give_up(others[0])
    waiting = threads.submit(lambda: None)
    assert threads._threads == 2
    assert threads.give_up(waiting)
    go.set()
    second.set()
    until(lambda: threads._stuck == 0)
    done = threading.Event()
    threads.submit(done.set)
    assert done.wait(5), "and the pool goes on when they come back"


def test_many_jobs_from_many_threads_are_all_done_once() -> None:
    threads, ended = Threads(7), list[int]()
    lock = threading.Lock()

    def note(number: int) -> None:
        with lock:
            ended.append(number)

    def submit(start: int) -> None:
        for number in range(start, start + 200):
            threads.submit(partial(note, number))

    callers = [threading.Thread(target=submit, args=(start,)) for start in range(0, 1_000, 200)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    until(lambda: len(ended) == 1_000)
    assert sorted(ended) == list(range(1_000))
    until(lambda: threads._wanted == 0)
    assert threads._threads <= 7
