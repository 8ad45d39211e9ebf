"""new, check, diagram, tools, call: making an app, and looking at one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from haru_fsm.limits import Limits
from tests.cli.apps import STATES, TOOLS, write_app
from tests.cli.conftest import PARCELS, Haru
from tests.engine.shopless import wiping_app


def test_new_writes_an_app_that_runs(process: Haru, empty: Path) -> None:
    made = process("new", "shop")
    assert (made.code, made.err) == (0, "")
    parts = sorted(path.name for path in (empty / "shop").iterdir())
    assert parts == [".gitignore", "README.md", "data", "haru.toml", "memory_store", "states", "tools"]
    assert not list((empty / "shop").rglob("__pycache__"))
    asked = process("ask", PARCELS, "--customer", "C003", "--app", "shop", HARU_DATABASE_URL="")
    assert asked.code == 0
    assert "34622188536" in asked.out
    assert (empty / "shop" / "memory_store" / "haru.db").exists()


def test_new_leaves_what_is_there_alone(haru: Haru, empty: Path) -> None:
    (empty / "mine").mkdir()
    (empty / "mine" / "notes").write_text("mine")
    for target in ("mine", "mine/notes", "mine/notes/deeper", "/proc/shop"):
        refused = haru("new", target)
        assert (refused.code, refused.out) == (2, "")
        assert target in refused.complaint
    assert [path.name for path in (empty / "mine").iterdir()] == ["notes"]


def test_what_to_type_next_can_be_typed(haru: Haru) -> None:
    assert (
        "Try it: haru check --app '새 가게' && haru chat --customer C003 --app '새 가게'" in haru("new", "새 가게").out
    )


def test_the_settings_of_a_new_app_name_every_limit_with_its_default(haru: Haru, empty: Path) -> None:
    haru("new", "shop")
    text = (empty / "shop" / "haru.toml").read_text("utf-8")
    assert tomllib.loads(text) == {"limits": {}}
    limits = text.partition("[limits]")[2]
    shown = tomllib.loads("\n".join(line.removeprefix("# ") for line in limits.splitlines() if " = " in line))
    defaults = Limits()
    assert shown.keys() == Limits.model_fields.keys()
    assert {name for name, value in shown.items() if getattr(defaults, name) not in (None, value)} == set()
    assert Limits.model_validate(shown)


def test_settings_of_the_app_hold_and_the_command_line_wins(process: Haru, empty: Path) -> None:
    process("new", "shop")
    (empty / "shop" / "haru.toml").write_text('model = "offline"\n[limits]\nmax_steps = 2\nloop_nudges = 1\n')
    ask = ("ask", PARCELS, "--customer", "C003", "--app", "shop", "--json")
    assert process(*ask).json["stopped_by"]["guard"] == "StepBudget(2)"
    assert process(*ask, HARU_LIMITS__MAX_STEPS="1").json["stopped_by"]["guard"] == "StepBudget(1)"
    assert process(*ask, "--max-steps", "8", HARU_LIMITS__MAX_STEPS="1").json["stopped_by"] is None


# --------------------------------------------------------------------------- check, diagram


def test_check_states_the_worst_case(haru: Haru) -> None:
    checked = haru("check", "--max-steps", "3")
    assert (checked.code, checked.err) == (0, "")
    assert "Every run ends" in checked.out
    certificate = haru("check", "--max-steps", "3", "--json").json
    assert certificate["accepted"] is True
    assert certificate["certificate"]["model_requests"]["value"] == 3


def test_a_slow_tool_is_part_of_the_worst_case(haru: Haru, empty: Path) -> None:
    def seconds(app: str, carrier_s: float) -> float:
        haru("new", app)
        delivery = empty / app / "tools" / "delivery.py"
        text = delivery.read_text("utf-8")
        assert "CARRIER_TIMEOUT_S = 3.0" in text
        delivery.write_text(text.replace("CARRIER_TIMEOUT_S = 3.0", f"CARRIER_TIMEOUT_S = {carrier_s}"), "utf-8")
        worst: float = haru("check", "--app", app, "--json").json["certificate"]["seconds"]["value"]
        return worst

    assert seconds("slow", 100) - seconds("quick", 3) == 40 * (100 - 10), "each of the 40 calls may be the slowest"


def test_check_states_tokens_and_money_where_they_are_known(haru: Haru, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request is as large as gemini-2.5-flash takes and gives, at $0.30 and $2.50 for a million tokens."""

    def worst(*words: str) -> dict[str, float | None]:
        certificate = haru("check", "--max-steps", "3", "--json", *words).json["certificate"]
        return {name: certificate[name]["value"] for name in ("http_requests", "tokens", "usd")}

    one = (1_048_576 * 0.30 + 65_536 * 2.50) / 1e6
    flash = worst("--model", "gemini:gemini-2.5-flash")
    assert flash == {"http_requests": 6, "tokens": 6 * (1_048_576 + 65_536), "usd": pytest.approx(6 * one)}
    assert worst("--model", "offline") == {"http_requests": 6, "tokens": None, "usd": 0}
    assert worst("--model", "gemini:tuned-by-us") == {"http_requests": 6, "tokens": None, "usd": None}
    monkeypatch.setenv("HARU_LIMITS__MAX_INPUT_TOKENS", "1000")
    assert worst("--model", "gemini:tuned-by-us")["tokens"] == 6 * (1000 + 65_536)
    assert worst("--model", "gemini:gemini-2.5-flash") == flash


def test_check_refuses_an_endless_workflow_and_shows_the_loop(haru: Haru, tmp_path: Path) -> None:
    endless = "\n".join(line for line in STATES.splitlines() if "when=StepBudget" not in line)
    app = write_app(tmp_path / "shop", states=endless)
    refused = haru("check", "--app", str(app))
    assert refused.code == 1
    assert "THINK -> ACT -> THINK" in refused.complaint
    told = haru("check", "--app", str(app), "--json")
    assert (told.code, told.json["accepted"]) == (1, False)
    assert set(told.json["loop"]) == {"THINK", "ACT"}


def test_check_without_an_app(haru: Haru) -> None:
    assert haru("check", "--app", ".").code == 2


def test_diagram(haru: Haru) -> None:
    drawn = haru("diagram")
    assert drawn.out.startswith("stateDiagram-v2\n")
    told = haru("diagram", "--json").json
    assert told["mermaid"].strip() == drawn.out.strip()
    assert "AWAIT_MODEL" in told["states"]


# --------------------------------------------------------------------------- tools, call


def test_tools(haru: Haru) -> None:
    listed = haru("tools", "--customer", "C003")
    assert listed.code == 0
    assert "get_order_status" in listed.out
    told = {each["name"]: each for each in haru("tools", "--customer", "C003", "--json").json}
    assert told["cancel_order"]["annotations"]["destructive"] is True
    assert told["get_order_status"]["annotations"]["read_only"] is True
    assert "fallback" in told["track_parcel"]
    assert "fallback" not in told["get_order_status"]
    assert told["track_parcel"]["timeout_s"] < told["get_order_status"]["timeout_s"]


def test_one_tool_with_its_declaration(haru: Haru) -> None:
    shown = haru("tools", "get_order_status", "--customer", "C003")
    assert '"order_id"' in shown.out
    told = haru("tools", "get_order_status", "--customer", "C003", "--json").json
    assert told["parameters"]["required"] == ["order_id"]


def test_tools_of_the_customer_who_wrote_last(haru: Haru, tmp_path: Path) -> None:
    code = TOOLS.replace("    return [get_stock]", "    return {f'get_stock_of_{session.customer_id}': get_stock}")
    app = write_app(tmp_path / "shop", tools=code)
    haru("ask", "재고 있나요?", "--customer", "kim", "--app", str(app))
    assert [each["name"] for each in haru("tools", "--json", "--app", str(app)).json] == ["get_stock_of_kim"]


@pytest.mark.parametrize(
    "words",
    [("tools",), ("check",), ("ask", "안녕하세요"), ("call", "quiet_call", "--args", '{"item": "cup"}')],
    ids=lambda words: words[0],
)
def test_tools_that_say_nothing_are_told_to_once(process: Haru, tmp_path: Path, words: tuple[str, ...]) -> None:
    code = TOOLS.replace("@tool(read_only=True)", "").replace("get_stock", f"quiet_{words[0]}")
    app = write_app(tmp_path / "shop", tools=code)
    customer = () if words[0] in ("tools", "check") else ("--customer", "kim")
    told = process(*words, *customer, "--app", str(app))
    warnings = [line for line in told.err.splitlines() if "says nothing" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"haru: warning: tool quiet_{words[0]} says nothing about its effect")


def test_call(haru: Haru) -> None:
    called = haru("call", "get_order_status", "--customer", "C003", "--args", '{"order_id": "HR20260725002"}', "--json")
    assert called.code == 0
    assert called.json["ended"] == "done"
    assert called.json["response"]["result"]["tracking_number"] == "34622188536"
    typed = haru("call", "get_order_status", "--customer", "C003", "--args", "-", typed='{"order_id": "HR20260725002"}')
    assert "34622188536" in typed.out


def test_call_repairs_as_for_a_model(haru: Haru) -> None:
    called = haru("call", "get_my_orders", "--customer", "C003", "--args", '{"tool_code": "x"}')
    assert called.code == 0
    assert "repaired: " in called.err


def test_call_that_raises(haru: Haru, tmp_path: Path) -> None:
    app = write_app(tmp_path / "shop")
    words = ("call", "get_stock", "--customer", "kim", "--app", str(app), "--args")
    assert haru(*words, '{"item": "cap"}', "--json").json["response"] == {"result": 3}
    failed = haru(*words, '{"item": "missing"}', "--json")
    assert (failed.code, failed.json["ended"]) == (1, "failed")
    assert "no such item" in failed.json["response"]["error"]


def test_a_call_by_hand_stands_in_the_ledger_and_in_a_journal(haru: Haru) -> None:
    args = ("--customer", "C003", "--args", '{"category": "기타", "urgency": "보통", "summary": "전화 부탁"}')
    called = haru("call", "create_ticket", *args, "--json").json
    assert called["ended"] == "done"
    shown = haru("show", called["conversation_id"], "--json").json
    assert [step["event"]["kind"] for step in shown["steps"]][-1] == "model_answered"
    assert shown["customer_id"] == "C003"


def test_what_cannot_be_taken_back_is_not_run_by_hand_without_a_yes(haru: Haru, tmp_path: Path) -> None:
    app = wiping_app(tmp_path)
    words = ("call", "wipe", "--customer", "kim", "--app", str(app), "--args", '{"what": "A"}')
    refused = haru(*words)
    assert refused.code == 2
    assert "--yes" in refused.complaint
    assert haru("list", "--app", str(app), "--json").json == []
    called = haru(*words, "--yes", "--json")
    assert (called.code, called.json["response"]) == (0, {"result": {"wiped": "A"}})
    steps = haru("show", called.json["conversation_id"], "--app", str(app), "--json").json["steps"]
    assert "approval_decided" in [step["event"]["kind"] for step in steps]


NOISY = TOOLS.replace(
    "from haru_fsm import tool", "import os, subprocess\nfrom haru_fsm import tool\nprint('imported')"
).replace(
    "        return len(item)",
    "        print('looked')\n        subprocess.run(['echo', 'started'])\n        return len(item)",
)


@pytest.mark.parametrize(
    "words",
    [
        ("tools", "--customer", "kim"),
        ("check",),
        ("call", "get_stock", "--customer", "kim", "--args", '{"item": "cup"}'),
    ],
)
def test_what_an_app_prints_is_no_result(process: Haru, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Whoever looks for a mistake in a tool prints; a script still reads one JSON value."""
    app = write_app(tmp_path / "shop", tools=NOISY)
    ended = process(*words, "--app", str(app), "--json")
    assert ended.json
    printed = ["imported", "looked", "started"] if words[0] == "call" else ["imported"]
    assert sorted(line for line in ended.err.splitlines() if line in ("imported", "looked", "started")) == printed


@pytest.mark.parametrize("instead", ["sys.stdout = io.StringIO()", "sys.stdout.close()"])
def test_a_result_comes_whatever_an_app_puts_in_the_place_of_standard_output(
    process: Haru, tmp_path: Path, instead: str
) -> None:
    app = write_app(tmp_path / "shop", tools=f"{TOOLS}\nimport io, sys\n{instead}\n")
    ended = process("tools", "--customer", "kim", "--app", str(app), "--json")
    assert ended.json
    assert "Traceback" not in ended.err
