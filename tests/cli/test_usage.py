"""Help, usage errors, and the promise that asking for help costs nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from haru_fsm import __version__
from haru_fsm.cli.commands import haru as table
from tests.cli.conftest import Haru, clean_environment

HEAVY = ("pydantic", "rich", "transitions", "google.genai", "openai", "asyncio", "sqlite3")


def commands(group: Any, *before: str) -> list[tuple[tuple[str, ...], Any]]:
    """Every command, by the words that call it."""
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, each in group.commands.items():
        words = (*before, name)
        found += commands(each, *words) if hasattr(each, "commands") else [(words, each)]
    return found


ALL = commands(get_command(table))


@pytest.mark.parametrize(("words", "each"), ALL, ids=[" ".join(words) for words, _ in ALL])
def test_everything_is_documented(words: tuple[str, ...], each: Any) -> None:
    assert each.help
    undocumented = [parameter.name for parameter in each.params if not getattr(parameter, "help", None)]
    assert not undocumented


@pytest.mark.parametrize(("words", "each"), ALL, ids=[" ".join(words) for words, _ in ALL])
def test_options_that_go_with_every_command(words: tuple[str, ...], each: Any) -> None:
    options = {option for parameter in each.params for option in parameter.opts}
    without_app = {("new",)}
    assert words in without_app or "--app" in options
    assert words in {("chat",), ("export",)} or "--json" in options


def test_usage_lines_name_what_they_take_once(haru: Haru) -> None:
    for words, _ in ALL:
        usage = haru(*words, "--help").out.splitlines()[0]
        assert "[[" not in usage, usage


def test_a_complaint_is_a_sentence(haru: Haru) -> None:
    refused = haru("ask", "?", "--customer", "C003", "--max-steps", "0")
    assert refused.code == 2
    assert ". See: haru ask --help" in refused.complaint


def test_the_tools_are_shown_without_a_word_about_a_database(haru: Haru) -> None:
    shown = haru("tools", "get_my_orders")
    assert (shown.code, shown.err) == (0, "")


def test_help_without_a_command(haru: Haru) -> None:
    alone = haru()
    assert (alone.code, alone.err) == (0, "")
    assert alone.out.startswith("Usage: haru ")
    assert haru("--version").out == f"haru {__version__}\n"


def test_help_needs_nothing_heavy() -> None:
    code = "import sys; from haru_fsm.cli import main; main(['--help']); print([m for m in sys.argv[1:] if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, env=clean_environment(), check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("aks",), "No such command 'aks'"),
        (("ask",), "Missing argument"),
        (("ask", "hi"), "--customer"),
        (("ask", "hi", "--customer", "C003", "--max-steps", "0"), "--max-steps"),
        (("ask", "hi", "--costumer", "C003"), "--costumer"),
        (("ticket",), "Missing command"),
        (("show",), "Missing argument"),
    ],
)
def test_wrong_usage_is_one_line(haru: Haru, words: tuple[str, ...], says: str) -> None:
    refused = haru(*words)
    assert (refused.code, refused.out) == (2, "")
    assert says in refused.complaint
    assert "--help" in refused.complaint
