"""Processes that are forked from one server: each lives, fails and dies for itself."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from haru_fsm.testing.forkserver import TIMEOUT_S, ForkServer

FORKED = "tests.testing.forked"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(FORKED) as running:
        yield running


def said(server: ForkServer, text: str) -> dict[str, object]:
    ended = server.run({"do": "say", "text": text})
    assert (ended.code, ended.complained, ended.complaint) == (0, "", "")
    told: dict[str, object] = json.loads(ended.said)
    return told


def test_each_task_has_a_process_of_its_own_and_nothing_to_read(server: ForkServer) -> None:
    one, other = said(server, "하나\n둘 🌱"), said(server, "x" * 300_000)
    assert (one["text"], one["read"], other["text"]) == ("하나\n둘 🌱", "", "x" * 300_000)
    assert one["process"] != other["process"]


def test_a_process_that_fails_says_why_and_harms_no_other(server: ForkServer) -> None:
    failed = server.run({"do": "fail", "text": "없는 파일"})
    assert (failed.code, failed.said, failed.complaint) == (1, "", "ValueError: 없는 파일")
    assert "Traceback" in failed.complained
    assert server.run({"do": "exit", "text": "3"}).complaint == "it said nothing"
    assert said(server, "still there")["text"] == "still there"


def test_a_process_that_is_killed_is_told_by_its_signal_and_harms_no_other(server: ForkServer) -> None:
    killed = server.run({"do": "SIGKILL"})
    assert (killed.code, killed.complaint) == (-signal.SIGKILL, "")
    assert said(server, "still there")["text"] == "still there"


def test_a_process_that_does_not_end_is_no_death_that_was_wanted(server: ForkServer) -> None:
    # The alarm that is set for each is rung at once.
    assert server.run({"do": "SIGALRM"}).complaint == f"it had not ended after {TIMEOUT_S} seconds"


def test_two_servers_have_different_hashes(server: ForkServer) -> None:
    """So that what hangs on the order of a set is seen, where a case and its twin are recovered by one each."""
    with ForkServer(FORKED) as another:
        assert said(server, "")["hash"] == said(server, "")["hash"]
        assert said(server, "")["hash"] != said(another, "")["hash"]


def test_a_server_that_is_gone_is_an_error_and_no_result() -> None:
    with ForkServer(FORKED) as server:
        server._server.kill()
        server._server.wait()
        with pytest.raises(OSError, match=r".+"):
            server.run({"do": "say", "text": ""})
