"""Where the database is, and which commands need no key and no customer."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from haru_fsm.errors import SettingsError
from haru_fsm.settings import Settings
from haru_fsm.stores.sqlite import SQLiteStore
from tests.cli.apps import write_app
from tests.cli.conftest import PARCELS, Haru


def path_of(folder: Path, **given: str) -> Path:
    store = Settings.for_folder(folder, **given).make_store(folder)
    assert isinstance(store, SQLiteStore)
    return store.path


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("haru.toml", 'database_url = "sqlite:///kept/shop.db"'),
        (".env", "HARU_DATABASE_URL=sqlite:///kept/shop.db"),
    ],
)
def test_a_relative_database_in_a_file_is_beside_that_file(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    monkeypatch.delenv("HARU_DATABASE_URL")
    app = tmp_path / "app"
    app.mkdir()
    (app / file).write_text(text, "utf-8")
    assert path_of(app) == app / "kept/shop.db"
    assert path_of(app, database_url="sqlite:///mine.db") == Path("mine.db").absolute(), (
        "the command line: where it is run"
    )
    monkeypatch.setenv("HARU_DATABASE_URL", "sqlite:///ours.db")
    assert path_of(app) == Path("ours.db").absolute()
    monkeypatch.setenv("HARU_DATABASE_URL", "sqlite:////var/ours.db")
    assert path_of(app) == Path("/var/ours.db")


@pytest.mark.parametrize("name", ["하루 db.db", "my%20db.db", "100%.db", "a#1.db", "what?.db"])
def test_a_file_is_written_as_it_is_called(haru: Haru, empty: Path, name: str) -> None:
    assert haru("ask", PARCELS, "--customer", "C003", "--db", f"sqlite:///{name}").code == 0
    assert sorted(each.name for each in empty.iterdir()) == [name]


def test_a_folder_is_no_database(haru: Haru, empty: Path) -> None:
    refused = haru("list", "--db", "sqlite:///.")
    assert (refused.code, refused.out) == (1, "")
    assert refused.complaint == f"haru: {empty} is a folder. Give a file in it, for example sqlite:///{empty}/haru.db."


def test_the_home_folder_is_found(empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert path_of(empty, database_url="sqlite:///~/haru.db") == tmp_path / "haru.db"
    monkeypatch.delenv("HARU_DATABASE_URL")
    (empty / ".env").write_text("HARU_DATABASE_URL=sqlite:///~/haru.db", "utf-8")
    assert path_of(empty) == tmp_path / "haru.db"


@pytest.mark.parametrize("where", ["environment", ".env", "haru.toml", "command line"])
def test_blanks_around_a_setting_are_none_of_it(empty: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """An env file of a container keeps them at the end of a line; `haru.db ` would be another database."""
    monkeypatch.delenv("HARU_DATABASE_URL")
    url, given = " sqlite:///mine.db ", {}
    if where == "environment":
        monkeypatch.setenv("HARU_DATABASE_URL", url)
    elif where == ".env":
        (empty / ".env").write_text(f'HARU_DATABASE_URL="{url}"', "utf-8")
    elif where == "haru.toml":
        (empty / "haru.toml").write_text(f'database_url = "{url}"', "utf-8")
    else:
        given = {"database_url": url}
    assert path_of(empty, **given) == empty / "mine.db"


def test_a_setting_of_blanks_is_not_set(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty / "haru.toml").write_text('model = "offline"\n[limits]\nmax_steps = 3\n', "utf-8")
    for name in ("HARU_MODEL", "HARU_CASSETTE", "HARU_DATABASE_TIMEOUT_S", "HARU_LIMITS__MAX_STEPS", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, " ")
    settings = Settings.for_folder(empty)
    assert (settings.model, settings.cassette, settings.limits.max_steps) == ("offline", None, 3)
    assert settings.gemini_api_key is None
    assert settings.database_timeout_s == 5.0


def test_a_database_that_was_named_in_vain_is_not_the_usual_one(empty: Path) -> None:
    """As `--db "$DATABASE"`, where nobody has set that."""
    with pytest.raises(SettingsError, match="database address is ''"):
        path_of(empty, database_url="")


def test_how_long_to_wait_for_a_lock_can_be_set(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARU_DATABASE_TIMEOUT_S", "0.25")
    store = Settings.for_folder(empty).make_store(empty)
    assert isinstance(store, SQLiteStore)
    with closing(store._open()) as connection:
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (250,)
    monkeypatch.setenv("HARU_DATABASE_TIMEOUT_S", "-1")
    with pytest.raises(SettingsError, match="HARU_DATABASE_TIMEOUT_S"):
        Settings.for_folder(empty)


def test_closing_a_ticket_asks_no_model(haru: Haru, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = haru("ask", "상담원 연결해 주세요", "--customer", "C003", "--model", "offline", "--json").json
    ticket = asked["ticket"]["ticket_id"]
    monkeypatch.setenv("HARU_MODEL", "gemini:gemini-flash-latest")
    assert haru("ask", PARCELS, "--customer", "C003").code != 0, "there is no key"
    closed = haru("ticket", "close", ticket, "--reply", "전화드렸습니다.", "--json")
    assert closed.code == 0
    assert closed.json["answer"] == "전화드렸습니다."


def test_tools_are_shown_before_anybody_has_written(haru: Haru, tmp_path: Path) -> None:
    shown = haru("tools", "--json")
    assert shown.code == 0
    assert "get_my_orders" in {each["name"] for each in shown.json}
    other = haru("tools", "--app", str(write_app(tmp_path / "other")), "--json")
    assert [each["name"] for each in other.json] == ["get_stock"]
    assert haru("tools", "--customer", "C999").code == 2


def test_a_setting_that_is_none_is_refused_by_name(empty: Path) -> None:
    (empty / "haru.toml").write_text('modle = "offline"\n')
    with pytest.raises(SettingsError, match="there is no setting modle"):
        Settings.for_folder(empty)


def test_a_relative_cassette_is_beside_the_file_that_names_it(empty: Path) -> None:
    (empty / "haru.toml").write_text('cassette = "traffic.jsonl"\n')
    assert Settings.for_folder(empty).cassette == empty / "traffic.jsonl"
