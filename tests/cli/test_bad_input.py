"""Whatever is wrong, there is one clear line that says what to do, the right exit code, and nothing is lost."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from haru_fsm.testing.fake_gemini import FakeGemini
from tests.cli.apps import STATES, TOOLS, write_app
from tests.cli.conftest import PARCELS, Ended, Haru, clean_environment, command

ASK = ("ask", "안녕하세요", "--customer", "C003")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ask", "안녕하세요", "--customer", "C999"), "C999"),
        (("ask", "안녕하세요", "--customer", ""), "empty"),
        (("ask", "", "--customer", "C003"), "message is empty"),
        (("ask", " \n", "--customer", "C003"), "message is empty"),
        ((*ASK, "--conversation", "c-unknown"), "haru list"),
        (("chat", "--customer", "C999"), "C999"),
        (("chat", "--customer", "C003", "--conversation", "c-unknown"), "haru list"),
        (("resume", "c-unknown"), "haru list"),
        (("ticket", "close", "HT-1", "--reply", "네"), "haru tickets"),
        (("list", "--customer", "\udcff"), "half a character"),
        (("stats", "--customer", "\udcff"), "half a character"),
        (("tickets", "--conversation", "\udcff"), "half a character"),
        (("list", "--customer", ""), "empty"),
        (("tools", "--customer", "C999"), "C999"),
        (("call", "get_my_order", "--customer", "C003"), "get_my_orders"),
        (("call", "get_order_status", "--customer", "C003", "--args", "{"), "no JSON"),
        (("call", "get_order_status", "--customer", "C003"), "order_id"),
        ((*ASK, "--model", "gemeni:flash"), "gemini:NAME"),
        ((*ASK, "--model", "gemini:flash"), "GEMINI_API_KEY"),
        ((*ASK, "--db", "mysql://here"), "sqlite:///FILE"),
        ((*ASK, "--db", "sqlite:///haru.db?mode=ro"), "no options behind a file's name"),
        ((*ASK, "--app", "nowhere"), "haru new"),
        (("list", "--app", "nowhere"), "haru new"),
        ((*ASK, "--app", "."), "states/"),
    ],
)
def test_bad_input(haru: Haru, words: tuple[str, ...], says: str) -> None:
    refused = haru(*words)
    assert (refused.code, refused.out) == (2, "")
    assert says in refused.complaint


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("import", "nothing.jsonl"), "there is no such file"),
        (("import", "."), "it is a folder"),
        (("import", "latin.txt"), "no UTF-8 text"),
        (("experiment", "nothing.toml"), "there is no such file"),
        (("experiment", "latin.txt"), "no UTF-8 text"),
        (("prove", "--replay", "nothing.json"), "there is no such file"),
        (("new", "latin.txt/shop"), "no folder"),
        ((*ASK, "--model", "cassette:nothing.tape"), "there is no such file"),
        ((*ASK, "--db", "sqlite:///latin.txt/haru.db"), "folder"),
    ],
)
def test_files_that_cannot_be_used_are_told_in_words(
    haru: Haru, empty: Path, words: tuple[str, ...], says: str
) -> None:
    (empty / "latin.txt").write_bytes("주문".encode("euc-kr"))
    refused = haru(*words)
    assert refused.code in (1, 2)
    assert says in refused.complaint
    assert words[-1].removeprefix("cassette:").removeprefix("sqlite:///") in refused.complaint
    assert not re.search(r"Errno|codec|unexpected", refused.complaint)


def test_a_tool_that_finds_no_file_says_so_in_words(haru: Haru, tmp_path: Path) -> None:
    tools = TOOLS.replace('raise LookupError("no such item")', 'open("stock.txt")')
    app = write_app(tmp_path / "shop", tools=tools)
    called = haru("call", "get_stock", "--customer", "kim", "--args", '{"item": "missing"}', "--app", str(app))
    assert called.code == 1
    assert "stock.txt" in called.out
    assert "Errno" not in called.out + called.err


def test_where_a_tool_has_raised_is_shown_on_request(
    haru: Haru, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = write_app(tmp_path / "shop")
    words = ("call", "get_stock", "--customer", "kim", "--args", '{"item": "missing"}', "--app", str(app))
    called = haru(*words)
    assert "LookupError: no such item" in called.out
    assert "HARU_DEBUG=1 shows where it was raised." in called.err
    assert "Traceback" not in called.err
    monkeypatch.setenv("HARU_DEBUG", "1")
    called = haru(*words)
    assert re.search(r'shop/tools/__init__\.py", line \d+, in get_stock', called.err)
    monkeypatch.delenv("HARU_DEBUG")
    assert "Traceback" not in haru(*words).err


def test_an_unknown_conversation_is_told_before_a_database_is_made(haru: Haru, empty: Path) -> None:
    refused = haru("show", "c-unknown")
    assert refused.code == 2
    assert "c-unknown" in refused.err
    assert not (empty.parent / "haru.db").exists()


def test_a_message_of_200_kb(haru: Haru) -> None:
    refused = haru("ask", "-", "--customer", "C003", typed="가" * 70_000)
    assert refused.code == 2
    assert "70,000 characters" in refused.complaint
    assert haru("list", "--json").json == []


def test_a_setting_that_is_none(process: Haru) -> None:
    refused = process(*ASK, HARU_LIMITS__MAX_STEPS="many")
    assert refused.code == 2
    assert "HARU_LIMITS__MAX_STEPS" in refused.complaint


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("HARU_LIMITS__NOPE", "3", ["HARU_LIMITS__NOPE", "HARU_LIMITS__", "max_steps, max_tool_calls"]),
        ("HARU_LIMITS__MAX_STEP", "3", ["HARU_LIMITS__MAX_STEP.", "HARU_LIMITS__MAX_STEPS?"]),
        ("HARU_LIMITS__MAX_STEPS", "0", ["HARU_LIMITS__MAX_STEPS", "max_steps in haru.toml", "'0'", "1 or more"]),
        ("HARU_LIMITS__SUMMARISE", "both", ["'digest' or 'model'"]),
        ("HARU_LIMITS__DEADLINE_S", "-1", ["more than 0"]),
        ("HARU_LIMITS", "many", ["HARU_LIMITS__MAX_STEPS"]),
        ("HARU_DATABASE_TIMEOUT_S", "soon", ["HARU_DATABASE_TIMEOUT_S", "a number"]),
    ],
)
def test_bad_settings_are_told_in_words(
    haru: Haru, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: list[str]
) -> None:
    monkeypatch.setenv(variable, value)
    refused = haru(*ASK)
    assert refused.code == 2
    assert all(word in refused.complaint for word in says), refused.complaint
    assert not re.search("Extra inputs|Input should|Source", refused.complaint)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("HARU_NOPE = 1", ["haru.toml", "HARU_NOPE", "database_url"]),
        ("HARU_MODLE = 'offline'", ["HARU_MODLE", "Did you mean model?"]),
        ("max_steps = 3", ["max_steps", "[limits]"]),
        ("HARU_LIMITS__MAX_STEPS = 3", ["Write max_steps in the table [limits]"]),
        ("limits = 3", ["a table, [limits]"]),
        ("[limits]\nmax_step = 3", ["max_step.", "Did you mean max_steps?"]),
        ("fallback_models = [1]", ["HARU_FALLBACK_MODELS (fallback_models[0] in haru.toml) is 1. It must be a text."]),
        ("[limits]\nmax_steps = true", ["HARU_LIMITS__MAX_STEPS", "is True. It must be a number."]),
        ("gemini_api_key = 'secret'", ["GEMINI_API_KEY", ".env"]),
        ("x = ", ["haru.toml is no TOML", "(at "]),
    ],
)
def test_bad_settings_in_a_file_are_told_in_words(haru: Haru, tmp_path: Path, text: str, says: list[str]) -> None:
    app = write_app(tmp_path / "shop")
    (app / "haru.toml").write_text(text, "utf-8")
    refused = haru("list", "--app", str(app))
    assert refused.code == 2
    assert all(word in refused.complaint for word in says), refused.complaint
    assert not re.search("Extra inputs|Input should|secret", refused.complaint)


def test_a_misspelt_variable_is_told_and_only_once(haru: Haru, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARU_LIMITS_MAX_STEPS", "3")
    asked = haru(*ASK)
    assert asked.code == 0
    assert asked.complaint.endswith("HARU_LIMITS_MAX_STEPS; it is ignored. Did you mean HARU_LIMITS__MAX_STEPS?")
    monkeypatch.setenv("HARU_DEBUG", "1")
    monkeypatch.delenv("HARU_LIMITS_MAX_STEPS")
    assert haru(*ASK).err == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("HARU_MODL=offline", "there is no setting HARU_MODL in .env; it is ignored. Did you mean HARU_MODEL?"),
        ("haru_modell=offline", "there is no setting HARU_MODELL in .env; it is ignored. Did you mean HARU_MODEL?"),
        ("HARU_DEBUG=1", "HARU_DEBUG counts in the environment only; in .env it is ignored."),
        ("OTHERS_MODL=offline", None),
        ("HARU_MODEL=offline\r", None),
    ],
)
def test_a_misspelt_variable_in_a_file_is_told_as_well(haru: Haru, tmp_path: Path, line: str, says: str | None) -> None:
    app = write_app(tmp_path / "shop")
    (app / ".env").write_bytes(f"{line}\nHARU_LIMITS__MAX_STEPS=3\n".encode())
    asked = haru("ask", "안녕하세요", "--customer", "kim", "--app", str(app))
    assert asked.code == 0
    assert asked.err == (f"haru: warning: {says}\n" if says else "")


def test_settings_with_a_byte_order_mark_are_read(haru: Haru, tmp_path: Path) -> None:
    app = write_app(tmp_path / "shop")
    (app / "haru.toml").write_bytes('\ufeffmodel = "nothing"\r\n[limits]\r\nmax_steps = 3\r\n'.encode())
    refused = haru("ask", "안녕하세요", "--customer", "kim", "--app", str(app))
    assert refused.code == 2
    assert "HARU_MODEL is 'nothing'" in refused.complaint


def test_another_customers_conversation_is_unknown(haru: Haru) -> None:
    run = haru("ask", PARCELS, "--customer", "C003", "--json").json
    refused = haru("ask", "안녕하세요", "--customer", "C001", "--conversation", run["conversation_id"])
    assert refused.code == 2
    assert haru("show", run["conversation_id"], "--json").json["run"] == 1


# --------------------------------------------------------------------------- apps


@pytest.mark.parametrize(
    ("states", "tools", "says"),
    [
        (None, TOOLS, "no states/"),
        (STATES, None, "no tools/"),
        ("workflow = (", TOOLS, "line 1: SyntaxError"),
        ("import nothing_of_this_name", TOOLS, "line 1: ModuleNotFoundError"),
        ("def workflow(limits):\n    return 1 / 0", TOOLS, "line 2: ZeroDivisionError"),
        ("", TOOLS, "workflow(...)"),
        (STATES, "raise RuntimeError('no shop')", "line 1: RuntimeError: no shop"),
        (STATES, "", "make_tools(...)"),
        (STATES, TOOLS.replace("item: str", "item"), "parameter item has no type hint"),
        (STATES, re.sub('""".*?"""', "", TOOLS, flags=re.DOTALL), "docstring"),
        (STATES.replace("when=StepBudget", "when=None and StepBudget"), TOOLS, "THINK"),
        ("def workflow(limits):\n    pass", TOOLS, "gave nothing. Let it return a Workflow"),
        (STATES, "def make_tools(session):\n    pass", "gave nothing. Let it return a list"),
        (STATES, "async def make_tools(session):\n    return []", "gave a coroutine. Let it return a list"),
        (STATES, "def make_tools(session):\n    return open('shop.json')", "line 2: FileNotFoundError"),
        (STATES, "def make_tools(session):\n    yield 1 / 0", "line 2: ZeroDivisionError"),
        (STATES, "def make_tools():\n    return []", "make_tools(session) cannot be used: TypeError"),
        (STATES, TOOLS + "def CustomerSession(*given, **more):\n    raise KeyError('no')", "session cannot be used"),
    ],
)
def test_apps_that_cannot_be_used(haru: Haru, tmp_path: Path, states: str | None, tools: str | None, says: str) -> None:
    app = write_app(tmp_path / "shop", states=states, tools=tools)
    refused = haru("ask", "안녕하세요", "--customer", "kim", "--app", str(app))
    assert (refused.code, refused.out) == (2, "")
    assert says in refused.complaint
    assert haru("list", "--json").json == []


def test_a_sound_app_of_ones_own(haru: Haru, tmp_path: Path) -> None:
    app = write_app(tmp_path / "shop")
    asked = haru("ask", "안녕하세요", "--customer", "kim", "--app", str(app), "--json")
    assert (asked.code, asked.json["finished"]) == (0, True)


# --------------------------------------------------------------------------- databases


@pytest.fixture
def database(haru: Haru, empty: Path) -> Path:
    """A database with one conversation in it."""
    haru("ask", PARCELS, "--customer", "C003")
    return empty.parent / "haru.db"


def test_a_file_that_is_no_database(haru: Haru, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, but long enough to look like one\n" * 100)
    before = file.read_bytes()
    for words in (ASK, ("list",)):
        refused = haru(*words, "--db", f"sqlite:///{file}")
        assert refused.code == 1
        assert "--db" in refused.complaint
    assert file.read_bytes() == before


def test_a_database_of_another_program(haru: Haru, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE notes (text)")
    refused = haru(*ASK, "--db", f"sqlite:///{tmp_path}/other.db")
    assert refused.code == 1
    assert "another program" in refused.complaint


def test_a_damaged_journal_is_told_and_hides_nothing_else(haru: Haru, database: Path) -> None:
    whole = haru("list", "--json").json[0]["conversation_id"]
    broken = haru("ask", PARCELS, "--customer", "C003", "--json").json["conversation_id"]
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "UPDATE steps SET event = replace(event, '주문', '주믄') WHERE seq = 1 AND conversation ="
            " (SELECT number FROM conversations WHERE conversation_id = ?)",
            (broken,),
        )
    for words in (("show", broken), ("ask", "?", "--customer", "C003", "--conversation", broken)):
        refused = haru(*words)
        assert (refused.code, refused.out) == (1, "")
        assert broken in refused.complaint
    assert haru("show", whole).code == 0
    figures = haru("stats", "--json")
    assert (figures.code, figures.json["conversations"], len(figures.json["damaged"])) == (1, 1, 1)
    assert broken in figures.complaint


def test_a_torn_file(haru: Haru, tmp_path: Path, database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    torn = tmp_path / "torn.db"
    torn.write_bytes(database.read_bytes()[:4096] + b"\xff" * 20_000)
    refused = haru("list", "--db", f"sqlite:///{torn}")
    assert refused.code == 1
    assert "database" in refused.complaint


@pytest.fixture
def locked(database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The database, while another connection holds all of it. Nobody waits five seconds in a test."""
    monkeypatch.setenv("HARU_DATABASE_TIMEOUT_S", "0.01")
    with closing(sqlite3.connect(database, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode=EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        holder.execute("UPDATE conversations SET seq = seq")
        yield database


def test_a_locked_database(haru: Haru, locked: Path) -> None:
    refused = haru(*ASK)
    assert (refused.code, refused.out) == (1, "")
    assert "Another process holds the database" in refused.complaint


def test_paths_that_cannot_be_written(haru: Haru, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (f"{tmp_path}/file/haru.db", "/proc/haru/haru.db", str(tmp_path)):
        refused = haru(*ASK, "--db", f"sqlite:///{path}")
        assert refused.code == 1
        assert "folder" in refused.complaint


# --------------------------------------------------------------------------- models


def test_a_wrong_key_ends_in_a_ticket_that_says_so(haru: Haru, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeGemini(api_key="right") as gemini:
        monkeypatch.setenv("GEMINI_API_KEY", "wrong-and-secret")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.base_url)
        asked = haru(*ASK)
    assert asked.code == 0
    assert "Model failed: wrong_key" in asked.out
    assert "secret" not in asked.out + asked.err
    assert "HT-" in asked.out


def test_no_network_ends_in_a_ticket_that_says_so(haru: Haru, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HARU_LIMITS__HTTP_RETRIES", "0")
    asked = haru(*ASK, "--json")
    assert asked.code == 0
    assert asked.json["stopped_by"]["guard"] == "model_failed"
    assert "Model failed: transport" in asked.err


# --------------------------------------------------------------------------- the unexpected


def test_what_nobody_expected_is_one_line_too(haru: Haru, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = write_app(
        tmp_path / "shop", states=STATES.replace("seq, request = last_request(conversation)", "raise KeyError('x')")
    )
    words = ("ask", "재고 알려주세요: get_stock item", "--customer", "kim", "--app", str(app))
    with FakeGemini([CALL, CALL, CALL]) as gemini:
        monkeypatch.setenv("GEMINI_API_KEY", "key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.base_url)
        failed = haru(*words)
        assert failed.code == 1
        assert "KeyError" in failed.complaint
        assert "HARU_DEBUG" in failed.complaint
        monkeypatch.setenv("HARU_DEBUG", "0")
        assert "Traceback" not in haru(*words).err
        monkeypatch.setenv("HARU_DEBUG", "1")
        assert "Traceback" in haru(*words).err
    assert len(haru("list", "--unfinished", "--json").json) == 3


CALL = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"functionCall": {"name": "get_stock", "args": {"item": "cap"}}}]},
            "finishReason": "STOP",
        }
    ]
}


FULL = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); os.execv(sys.argv[1], sys.argv[1:])"


def test_a_full_disk_loses_nothing(process: Haru, empty: Path) -> None:
    """No file may grow beyond a size at which a write in the middle of the run fails."""
    database = f"sqlite:///{empty.parent}/haru.db"
    full = subprocess.run(
        [sys.executable, "-c", FULL.format(120_000), *command("ask", PARCELS, "--customer", "C003")],
        capture_output=True,
        env=clean_environment(HARU_DATABASE_URL=database),
        cwd=empty,
        check=False,
    )
    failed = Ended(full.returncode, full.stdout.decode(), full.stderr.decode())
    assert failed.code == 1
    assert "store" in failed.complaint
    told = [line for line in failed.out.splitlines() if line.startswith("[step")]
    assert process("resume", "--all").code == 0
    assert process("verify", "--json").code == 0
    for one in process("list", "--json").json:
        shown = process("show", one["conversation_id"], "--json").json
        assert one["resting"]
        requested = [step for step in shown["steps"] if step["event"]["kind"] == "tools_requested"]
        assert len(requested) >= len({line.split("]")[0] for line in told})
