"""HARU_CASSETTE records what a command says to a model; --model cassette:FILE plays it with no key and no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from haru_fsm.testing.fake_gemini import FakeGemini, call, reply
from tests.cli.apps import TOOLS, write_app
from tests.cli.conftest import PARCELS, Haru

KEY = "AIzaSyA-a-key-that-nobody-may-ever-read-0"
SAME = ("state", "answer", "steps", "tool_runs", "usage")


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    return tmp_path / "c.jsonl"


def test_a_conversation_with_gemini_is_played_without_key_or_network(
    haru: Haru, tmp_path: Path, cassette: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = str(write_app(tmp_path / "app"))
    script = [reply("확인해 볼게요.", call("get_stock", item="이어폰")), reply("이어폰은 3개 있습니다 🎧")]
    asked = ("ask", "이어폰 있나요?", "--customer", "c", "--app", app, "--json")
    with FakeGemini(script, api_key=KEY) as gemini:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.base_url)
        monkeypatch.setenv("HARU_CASSETTE", str(cassette))
        recorded = haru(*asked)
    assert recorded.json["answer"] == "이어폰은 3개 있습니다 🎧"
    assert KEY not in cassette.read_text()
    for name in ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "HARU_CASSETTE"):
        monkeypatch.delenv(name)
    played = haru(*asked, "--model", f"cassette:{cassette}")
    assert played.code == 0
    assert {name: played.json[name] for name in SAME} == {name: recorded.json[name] for name in SAME}
    assert len(gemini.received) == 2


def test_keys_of_the_settings_are_left_out_whatever_they_look_like(
    haru: Haru, tmp_path: Path, cassette: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "of-no-known-shape"
    with FakeGemini([reply(f"제 키는 {secret}입니다.")]) as gemini:
        monkeypatch.setenv("GEMINI_API_KEY", secret)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.base_url)
        monkeypatch.setenv("HARU_CASSETTE", str(cassette))
        app = str(write_app(tmp_path / "app"))
        asked = haru("ask", "키?", "--customer", "c", "--app", app, "--json").json
        haru("replay", asked["conversation_id"], "--app", app, "--save", f"{cassette}.again")
    for file in (cassette, Path(f"{cassette}.again")):
        assert secret not in file.read_text("utf-8")
        assert "제 키는 [key]입니다." in file.read_text("utf-8")


def test_what_a_conversation_cost_is_shown(haru: Haru, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Per step, per run and conversation, by model and by day: $0.30 and $2.50 for a million tokens."""
    app = str(write_app(tmp_path / "app"))
    used = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}
    script = [reply(call("get_stock", item="mug"), usage=used), reply("세 개", usage=used)]
    with FakeGemini(script) as gemini:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.base_url)
        given = ("--app", app, "--model", "gemini:gemini-2.5-flash", "--json")
        run = haru("ask", "머그 있나요?", "--customer", "c", *given).json
    each = 1000 * 0.30e-6 + 100 * 2.50e-6
    assert run["usage"]["cost_usd"] == pytest.approx(2 * each)
    shown = haru("show", run["conversation_id"]).out
    assert shown.count("$0.000550") == 2
    assert "2,200 tokens (prompt 2,000, answer 200) · $0.001100" in shown
    figures = haru("stats", "--json").json
    assert figures["models"]["gemini-2.5-flash"]["cost_usd"] == pytest.approx(2 * each)
    assert [day["cost_usd"] for day in figures["days"].values()] == [pytest.approx(2 * each)]
    assert figures["usd_per_run"]["p50"] == pytest.approx(2 * each)
    assert figures["tools"]["get_stock"]["ms"].keys() == {"total", "p50", "p95"}
    table = haru("stats").out
    assert "money: $0.001100, of a run $0.001100 (p50), $0.001100 (p95)" in table
    assert "tickets by reason: none" in table


def test_a_conversation_with_a_ticket_is_played_with_a_ticket_of_its_own(
    haru: Haru, cassette: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second message is asked after a notice that names a number; that number is another one in the replay."""

    def two(*options: str) -> tuple[str, str]:
        first = haru("ask", PARCELS, "--customer", "C003", "--max-steps", "1", "--json", *options).json
        again = haru(
            "ask", PARCELS, "--customer", "C003", "--conversation", first["conversation_id"], "--json", *options
        ).json
        return first["ticket"]["ticket_id"], again["answer"]

    monkeypatch.setenv("HARU_CASSETTE", str(cassette))
    recorded = two()
    monkeypatch.delenv("HARU_CASSETTE")
    played = two("--model", f"cassette:{cassette}")
    assert played[1] == recorded[1]
    assert played[0] != recorded[0]


def test_a_tool_that_answers_otherwise_is_shown(
    haru: Haru, tmp_path: Path, cassette: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = write_app(tmp_path / "app")
    asked = ("ask", "How many left? get stock", "--customer", "c", "--json")
    monkeypatch.setenv("HARU_CASSETTE", str(cassette))
    script = [reply(call("get_stock", item="mug")), reply("Three.")]
    with FakeGemini(script) as gemini:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.base_url)
        haru(*asked, "--app", str(app))
    monkeypatch.delenv("HARU_CASSETTE")
    changed = write_app(tmp_path / "changed", tools=TOOLS.replace("len(item)", "len(item) + 40"))
    played = haru(*asked, "--app", str(changed), "--model", f"cassette:{cassette}").json
    because = played["stopped_by"]["because"]
    assert because.startswith("replay: ")
    assert '-     "result": 3' in because
    assert '+     "result": 43' in because


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_cassette_that_cannot_be_read(haru: Haru, name: str) -> None:
    ended = haru("ask", "?", "--customer", "C003", "--model", f"cassette:{name}")
    assert ended.code == 2
    assert name in ended.complaint


def test_playing_and_recording_the_same_file_is_refused(
    haru: Haru, cassette: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARU_CASSETTE", str(cassette))
    haru("ask", PARCELS, "--customer", "C003")
    ended = haru("ask", PARCELS, "--customer", "C003", "--model", f"cassette:{cassette}")
    assert ended.code == 2
    assert "Name another file" in ended.complaint
