"""From settings to models: kinds, stand-ins, the one that rewrites, and one clear line for what is missing."""

import sys
from pathlib import Path

import pytest

from haru_fsm.errors import HaruError, ModelError, SettingsError
from haru_fsm.limits import Limits
from haru_fsm.models import ModelRequest
from haru_fsm.models.cassette import CassetteModel, Recorder, RecordingModel
from haru_fsm.models.choosing import Access, Choice
from haru_fsm.models.fallback import FallbackModel
from haru_fsm.models.offline import OfflineModel
from haru_fsm.models.openai import OpenAIModel
from haru_fsm.models.scripted import answer
from haru_fsm.models.two_tier import TwoTierModel
from haru_fsm.settings import Settings
from haru_fsm.testing.fake_gemini import FakeGemini
from haru_fsm.testing.fake_gemini import reply as gemini_reply
from haru_fsm.testing.fake_openai import FakeOpenAI, error, reply
from tests.engine.shopless import bare

NAMES = ("HARU_MODEL", "HARU_FALLBACK_MODELS", "HARU_ANSWER_MODEL", "HARU_CASSETTE", "OPENAI_API_KEY", "OPENAI_BASE_URL",
         "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL")  # fmt: skip
APP = bare(Limits())


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def settings(monkeypatch: pytest.MonkeyPatch, folder: Path, **set_to: str) -> Settings:
    for name, value in set_to.items():
        monkeypatch.setenv(name, value)
    return Settings.for_folder(folder)


def test_one_model_of_each_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert isinstance(settings(monkeypatch, tmp_path).make_model(APP), OfflineModel)
    made = settings(monkeypatch, tmp_path, HARU_MODEL="openai:gpt-5-mini", OPENAI_API_KEY="sk-x").make_model(APP)
    assert isinstance(made, OpenAIModel)
    assert made.name == "gpt-5-mini"


@pytest.mark.parametrize("given", ["openai:a,gemini:b", " openai:a , gemini:b ,"])
def test_stand_ins_and_the_one_that_rewrites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str) -> None:
    made = settings(
        monkeypatch, tmp_path, HARU_MODEL="gemini:g", HARU_FALLBACK_MODELS=given, HARU_ANSWER_MODEL="openai:strong",
        OPENAI_API_KEY="sk-x", GEMINI_API_KEY="AIzax",
    ).make_model(APP)  # fmt: skip
    assert isinstance(made, TwoTierModel)
    assert made.name == "g > a > b + strong"


def test_a_cassette_plays_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever stood in, or rewrote the answer, is in the recording; nobody else is asked, and no key is needed."""
    request = ModelRequest(system="", contents=({"role": "user", "parts": [{"text": "?"}]},))
    Recorder(tmp_path / "c.jsonl").note(request, answer("!", model="gpt-4o"))
    made = settings(
        monkeypatch, tmp_path, HARU_MODEL=f"cassette:{tmp_path}/c.jsonl", HARU_FALLBACK_MODELS="gemini:b",
        HARU_ANSWER_MODEL="openai:strong",
    ).make_model(APP)  # fmt: skip
    assert isinstance(made, CassetteModel)


def test_a_file_may_have_a_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "haru.toml").write_text('model = "openai:a"\nfallback_models = ["openai:b", "offline"]\n')
    made = settings(monkeypatch, tmp_path, OPENAI_API_KEY="sk-x").make_model(APP)
    assert isinstance(made, FallbackModel)
    assert made.name == "a > b > offline"


def test_dotenv_counts_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-x\nHARU_MODEL=openai:a\nHARU_FALLBACK_MODELS=offline,openai:b\n")
    assert settings(monkeypatch, tmp_path).make_model(APP).name == "a > offline > b"


@pytest.mark.parametrize(
    ("set_to", "raised", "said"),
    [
        ({"HARU_MODEL": "openai:"}, SettingsError, "HARU_MODEL is 'openai:'"),
        ({"HARU_MODEL": "gpt-5"}, SettingsError, "openai:NAME"),
        ({"HARU_MODEL": "openai:gpt-5"}, ModelError, "OPENAI_API_KEY"),
        ({"HARU_FALLBACK_MODELS": "offline,nothing:x"}, SettingsError, "HARU_FALLBACK_MODELS is 'nothing:x'"),
        ({"HARU_FALLBACK_MODELS": "gemini:x"}, ModelError, "GEMINI_API_KEY"),
        ({"HARU_ANSWER_MODEL": "strong"}, SettingsError, "HARU_ANSWER_MODEL is 'strong'"),
        ({"HARU_ANSWER_MODEL": "openai:x"}, ModelError, "OPENAI_API_KEY"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, set_to: dict[str, str], raised: type[HaruError], said: str
) -> None:
    with pytest.raises(raised) as complaint:
        settings(monkeypatch, tmp_path, **set_to).make_model(APP)
    assert said in str(complaint.value)
    assert "\n" not in str(complaint.value)


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ModelError, match=r"pip install 'haru-fsm\[openai\]'"):
        settings(monkeypatch, tmp_path, HARU_MODEL="openai:a", OPENAI_API_KEY="sk-x").make_model(APP)


async def test_keys_are_shown_nowhere_and_left_out_of_recordings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with FakeOpenAI([reply("열쇠는 topsecret1 입니다.")]) as openai:
        given = settings(
            monkeypatch, tmp_path, HARU_MODEL="openai:a", OPENAI_API_KEY="topsecret1", OPENAI_BASE_URL=openai.base_url,
            HARU_CASSETTE=str(tmp_path / "x.jsonl"),
        )  # fmt: skip
        assert "topsecret1" not in repr(given) + repr(given.choice)
        assert "topsecret1" not in repr(Access(openai_key="topsecret1", gemini_key="topsecret1"))
        recording = given.make_model(APP)
        assert isinstance(recording, RecordingModel)
        await recording.respond(ModelRequest("", ({"role": "user", "parts": [{"text": "?"}]},)))
        await recording.aclose()
    assert openai.received[0].headers["authorization"] == "Bearer topsecret1"
    recorded = (tmp_path / "x.jsonl").read_text("utf-8")
    assert "열쇠는" in recorded
    assert "topsecret1" not in recorded


def test_a_certificate_counts_every_model_that_may_be_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone = settings(monkeypatch, tmp_path, HARU_MODEL="openai:gpt-4o").costs(Limits())
    both = settings(
        monkeypatch, tmp_path, HARU_FALLBACK_MODELS="openai:gpt-4o-mini", HARU_ANSWER_MODEL="offline"
    ).costs(Limits())
    assert (alone.models, both.models) == (1, 3)
    assert both.requests == 3 * alone.requests
    assert both.usd_per_token == alone.usd_per_token
    assert alone.usd_per_token is not None
    assert alone.usd_per_token > 0
    elsewhere = settings(monkeypatch, tmp_path, OPENAI_BASE_URL="http://localhost:1/v1").costs(Limits())
    assert elsewhere.usd_per_token is None


def test_choices_are_made_without_a_sdk() -> None:
    assert Choice("offline", ["cassette:x"], "gemini:y").all == ("offline", "cassette:x", "gemini:y")


async def test_a_conversation_by_settings_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first model is down, the second takes the steps, the third writes the answer: through the engine."""
    from haru_fsm import Engine
    from haru_fsm.stores.memory import MemoryStore

    async with (
        FakeOpenAI([error(401, "no"), reply("초안입니다.")]) as openai,
        FakeGemini([gemini_reply("다 됐습니다.")]) as gemini,
    ):
        made = settings(
            monkeypatch, tmp_path, HARU_MODEL="openai:first", HARU_FALLBACK_MODELS="openai:second",
            HARU_ANSWER_MODEL="gemini:third", OPENAI_BASE_URL=openai.base_url, GEMINI_API_KEY="k",
            GOOGLE_GEMINI_BASE_URL=gemini.base_url,
        ).make_model(APP)  # fmt: skip
        async with Engine(APP, model=made, store=MemoryStore()) as engine:
            run = await engine.ask("안녕하세요?", customer_id="C003")
    assert (run.answer, run.steps) == ("다 됐습니다.", 3)
    assert [one.model for one in openai.received] == ["first", "second"]
    assert gemini.received[0].model == "third"
    assert run.usage.total == 240
    assert not openai.violations + gemini.violations
