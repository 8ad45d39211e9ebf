"""What happens between a person and a process: Ctrl-C, pipes that close, answers shown while they are written."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from haru_fsm.testing.fake_gemini import FakeGemini, call, reply
from tests.cli.conftest import PARCELS, Haru, clean_environment, command

HANG = {"transport": "hang"}


class Script:
    """Items for a FakeGemini; `reached` is set when the first hanging one is asked for."""

    def __init__(self, *items: Any) -> None:
        self._items: Iterator[Any] = iter(items)
        self.reached = threading.Event()

    def __call__(self, _body: Any) -> Any:
        item = next(self._items)
        if item is HANG:
            self.reached.set()
        return item


Begin = Callable[..., "subprocess.Popen[bytes]"]


def _heeds_ctrl_c() -> None:
    """What runs in the background of a shell ignores Ctrl-C, and so would all that it begins."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def begin(empty: Path, tmp_path: Path) -> Iterator[Begin]:
    """Begins a command in a process of its own, on a model at this address."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(*words: str, base_url: str, **how: Any) -> subprocess.Popen[bytes]:
        environment = clean_environment(
            HARU_DATABASE_URL=f"sqlite:///{tmp_path}/haru.db", GEMINI_API_KEY="k", GOOGLE_GEMINI_BASE_URL=base_url
        )
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        how = {**pipes, "preexec_fn": _heeds_ctrl_c, **how}
        begun.append(subprocess.Popen(command(*words), env=environment, cwd=empty, **how))
        return begun[-1]

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


STOPS = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@STOPS
def test_who_is_stopped_says_how_to_go_on(begin: Begin, haru: Haru, number: int, code: int) -> None:
    script = Script(reply(call("get_my_orders")), HANG)
    with FakeGemini(script) as gemini:
        process = begin("ask", PARCELS, "--customer", "C003", base_url=gemini.base_url)
        assert script.reached.wait(30)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert haru("list", "--unfinished", "--json").json[0]["owner"] is None, "nobody has to wait for its lease"
    assert out.decode() == "[step 1] Action: get_my_orders({})\n"
    words = err.decode().strip().rpartition("haru resume ")
    assert "Traceback" not in err.decode()
    resumed = haru("resume", words[2], "--model", "offline", "--json")
    assert (resumed.code, resumed.json["state"]) == (0, "DONE")
    assert resumed.err.startswith("[step 1] Resumed by ")
    assert "get_my_orders" not in resumed.err


def test_resuming_all_that_was_cut_off(begin: Begin, haru: Haru) -> None:
    script = Script(HANG, HANG)
    with FakeGemini(script) as gemini:
        for _ in range(2):
            script.reached.clear()
            process = begin("ask", PARCELS, "--customer", "C003", base_url=gemini.base_url)
            assert script.reached.wait(30)
            process.kill()
            process.wait()
    assert len(haru("list", "--unfinished", "--json").json) == 2
    resumed = haru("resume", "--all")
    assert resumed.code == 0
    assert resumed.out.endswith("2 carried on, 0 failed.\n")


def test_a_run_outlives_its_reader(begin: Begin, haru: Haru) -> None:
    read, write = os.pipe()
    os.close(read)
    with FakeGemini([reply("안녕하세요!")]) as gemini:
        process = begin("ask", "안녕하세요", "--customer", "C003", base_url=gemini.base_url, stdout=write)
        os.close(write)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")
    assert haru("list", "--json").json[0]["state"] == "DONE"


def test_nothing_that_is_shown_moves_the_cursor(haru: Haru, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeGemini([reply("before\x1b[2Jafter, \u202e000,01\u202c \u2067원\u2069, 👩\u200d👧")]) as gemini:
        monkeypatch.setenv("GEMINI_API_KEY", "k")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.base_url)
        asked = haru("ask", "\x1b]0;title\x07안녕하세요 \u202e", "--customer", "C003")
    conversation = haru("list", "--json").json[0]["conversation_id"]
    shown = haru("show", conversation)
    for said in (asked.out, shown.out):
        assert "before\ufffd[2Jafter" in said
        assert "\x1b" not in said
        assert "\x07" not in said
        assert not set("\u202e\u202c\u2067\u2069") & set(said), "nothing beside it is read backwards"
        assert "👩\u200d👧" in said, "a family stays one"


def test_a_table_outlives_its_reader(process: Haru, begin: Begin) -> None:
    process("ask", PARCELS, "--customer", "C003")
    read, write = os.pipe()
    os.close(read)
    shown = begin("stats", base_url="", stdout=write)
    os.close(write)
    _, err = shown.communicate(timeout=30)
    assert (shown.returncode, err) == (0, b"")


def test_on_a_terminal_the_answer_shows_while_it_is_written_and_stays_once(begin: Begin) -> None:
    words = "배송 조회는 마이페이지에서 하실 수 있습니다."
    mine, its = pty.openpty()
    with FakeGemini([reply(words)], pause_s=0.01) as gemini:
        process = begin("ask", "안녕하세요", "--customer", "C003", base_url=gemini.base_url, stdout=its, stderr=its)
        os.close(its)
        seen = _all_of(mine)
        assert process.wait(30) == 0
        assert gemini.received[0].streamed
    lines = [line for line in seen.decode().splitlines() if words in line and "\x1b" not in line]
    assert lines == [words]
    assert b"\x1b[2K" in seen


@pytest.mark.parametrize(
    ("words", "told"), [(("verify",), "reading conversations"), (("export",), "writing conversations")]
)
def test_long_work_shows_how_far_it_is_where_somebody_watches(
    process: Haru, begin: Begin, words: tuple[str, ...], told: str
) -> None:
    process("ask", PARCELS, "--customer", "C003")
    mine, its = pty.openpty()
    working = begin(*words, base_url="", stderr=its)
    os.close(its)
    watched, (out, _) = _all_of(mine).decode(), working.communicate(timeout=30)
    assert (working.returncode, out.count(b"\x1b")) == (0, 0)
    assert told in watched
    assert process(*words).err.count("\n") <= 1, "in a pipe nothing is drawn"


def _all_of(terminal: int) -> bytes:
    seen = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            # The other end was closed: on Linux that is an error, not an end.
            break
        if not piece:
            break
        seen += piece
    os.close(terminal)
    return seen


# --------------------------------------------------------------------------- chat


def test_chat(haru: Haru) -> None:
    chatted = haru("chat", "--customer", "C003", typed=f"\n{PARCELS}\n\nHR20260725002 언제 와요?\n/quit\nnever read\n")
    assert chatted.code == 0
    assert "[step 3] 최종 답변" in chatted.out
    [one] = haru("list", "--json").json
    assert (one["run"], one["conversation_id"] in chatted.err) == (2, True)


def test_chat_goes_on_after_a_message_that_is_refused(haru: Haru) -> None:
    chatted = haru("chat", "--customer", "C003", typed=f"{'가' * 30_000}\n{PARCELS}\n")
    assert chatted.code == 0
    assert "haru: The message has 30,000 characters" in chatted.err
    assert "34622188536" in chatted.out


def test_chat_has_its_commands_and_takes_no_other_for_a_message(haru: Haru) -> None:
    chatted = haru("chat", "--customer", "C003", typed="/exit\n/foo bar\n/\n/quit now\n/quit\n")
    assert chatted.code == 0
    for word in ("/exit", "/foo bar", "/", "/quit now"):
        assert f"no command {word}." in chatted.err
    assert "/quit, /approve CALL, /deny CALL REASON" in chatted.err
    assert haru("list", "--json").json == [], "nothing went to the model"


def test_chat_continues_a_conversation(haru: Haru) -> None:
    run = haru("ask", PARCELS, "--customer", "C003", "--json").json
    haru("chat", "--customer", "C003", "--conversation", run["conversation_id"], typed="안녕하세요\n")
    assert haru("show", run["conversation_id"], "--json").json["run"] == 2


def test_chat_prompts_where_its_answers_are(begin: Begin, tmp_path: Path) -> None:
    terminal, its_end = pty.openpty()
    with open(tmp_path / "log", "wb") as log, os.fdopen(terminal, "r+b", buffering=0) as typed:
        process = begin("chat", "--customer", "C003", base_url="", stdin=its_end, stdout=its_end, stderr=log)
        typed.write(b"/quit\n")
        assert process.wait(30) == 0
        shown = typed.read(1_000)
        os.close(its_end)
    assert b"> " in shown, "beside the echo of what was typed"


def test_ctrl_c_stops_a_run_and_not_the_chat(begin: Begin, haru: Haru) -> None:
    script = Script(HANG, reply("이어서 답합니다."), reply("안녕히 가세요."))
    with FakeGemini(script) as gemini:
        process = begin("chat", "--customer", "C003", base_url=gemini.base_url)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("안녕하세요\n".encode())
        process.stdin.flush()
        assert script.reached.wait(30)
        process.send_signal(signal.SIGINT)
        while b"Stopped." not in process.stderr.readline():
            assert process.poll() is None
        out, _ = process.communicate("고마워요\n/quit\n".encode(), timeout=30)
    assert process.returncode == 0
    assert "안녕히 가세요." in out.decode()
    [one] = haru("list", "--json").json
    assert (one["resting"], one["run"]) == (True, 2)


def test_a_run_needs_no_reader_from_the_start(begin: Begin, haru: Haru) -> None:
    def close() -> None:
        os.close(1)
        os.close(2)

    with FakeGemini([reply("안녕하세요!")]) as gemini:
        process = begin("ask", "안녕하세요", "--customer", "C003", base_url=gemini.base_url, preexec_fn=close)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert haru("list", "--json").json[0]["state"] == "DONE"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device here is always full")
def test_a_disk_that_is_full_is_told_in_one_line(begin: Begin) -> None:
    with FakeGemini([reply("안녕하세요!")]) as gemini, open("/dev/full", "wb") as full:
        process = begin("ask", "안녕하세요", "--customer", "C003", "--json", base_url=gemini.base_url, stdout=full)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "haru: unexpected OSError" in told.decode()
    assert "Traceback" not in told.decode()


def test_a_width_that_is_no_number_is_as_good_as_none(haru: Haru, monkeypatch: pytest.MonkeyPatch) -> None:
    haru("ask", "안녕하세요", "--customer", "C003", "--model", "offline")
    shown = haru("list")
    monkeypatch.setenv("COLUMNS", "wide")
    assert haru("list") == shown
