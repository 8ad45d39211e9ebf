"""What the documents say of the machine, the commands, the limits and the settings is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from pydantic import AliasChoices

from haru_fsm import Limits, load_app
from haru_fsm._version import __version__
from haru_fsm.cli import exits
from haru_fsm.cli.commands import haru
from haru_fsm.diagram import mermaid
from haru_fsm.settings import Settings
from tests.docs.reading import FACES, ROOT, blocks, commands_typed, documents, prose, table, text_of

WORKFLOW = load_app(ROOT, limits=Limits()).workflow


def _leaves(group: Any, *before: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, *before, name)
        else:
            yield " ".join([*before, name]), command


COMMANDS: dict[str, Any] = dict(_leaves(typer.main.get_command(haru)))


def _options(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts} | {"--help"}


@pytest.mark.parametrize("face", FACES)
def test_the_diagram_is_the_table(face: str) -> None:
    [diagram] = blocks(face, "mermaid")
    assert diagram.text == mermaid(WORKFLOW)


def test_both_faces_show_the_same_code() -> None:
    english, korean = ([(block.language, block.text) for block in blocks(face)] for face in FACES)
    assert english == korean


@pytest.mark.parametrize("face", FACES)
def test_every_command_is_listed(face: str) -> None:
    heads = {"README.md": "| command | does |", "README.ko.md": "| 명령 | 하는 일 |"}
    listed = {cell.removeprefix("haru ").split(" --")[0] for cell, _ in table(face, heads[face])}
    names = {_name_of(line) for line in listed}
    assert names == set(COMMANDS)


@pytest.mark.parametrize("document", documents())
def test_commands_and_options_exist(document: str) -> None:
    for line in commands_typed(document):
        if line.startswith(("--", "COMMAND")):
            continue
        name = _name_of(line)
        unknown = set(re.findall(r"--[a-z][a-z-]*", re.sub(r"'[^']*'|\"[^\"]*\"", "", line))) - _options(COMMANDS[name])
        assert not unknown, f"{document}: haru {line}: {unknown}"


def _name_of(line: str) -> str:
    """The longest command that the line begins with."""
    fitting = [name for name in COMMANDS if line == name or line.startswith(f"{name} ")]
    assert fitting, f"haru {line}: there is no such command"
    return max(fitting, key=len)


@pytest.mark.parametrize("face", FACES)
def test_every_limit_has_its_default(face: str) -> None:
    heads = {"README.md": "| limit | default | meaning |", "README.ko.md": "| 한도 | 기본값 | 뜻 |"}
    listed = {name: default for name, default, _ in table(face, heads[face])}
    for name, field in Limits.model_fields.items():
        if name not in listed:
            # Fields that nothing reads yet are named in a sentence below the table.
            assert f"`{name}`" in text_of(face)
            continue
        default = field.get_default()
        told = listed.pop(name)
        assert (
            told in ("none", "없음")
            if default is None
            else told == (default if isinstance(default, str) else f"{default:g}")
        )
    assert not listed


@pytest.mark.parametrize("face", FACES)
def test_every_setting_is_named(face: str) -> None:
    for name, field in Settings.model_fields.items():
        if name == "limits":
            continue
        match field.validation_alias:
            case AliasChoices(choices=choices):
                names = [str(choice) for choice in choices]
            case str(alias):
                names = [alias]
            case _:
                names = [f"HARU_{name}".upper()]
        for variable in names:
            assert f"`{variable}`" in text_of(face), f"{face} does not name {variable}"


@pytest.mark.parametrize("face", FACES)
def test_exit_codes_are_those_of_the_command(face: str) -> None:
    heads = {"README.md": "| code | meaning |", "README.ko.md": "| 코드 | 뜻 |"}
    listed = {int(code) for code, _ in table(face, heads[face])}
    assert listed >= {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}


def test_the_table_in_the_design_is_the_table() -> None:
    told = [
        (event, tuple(source.split(", ")), target, how)
        for event, source, target, _, how in table("docs/design.md", "| event | from | to | when | then |")
    ]
    real = [
        (row.kind, tuple(map(str, row.sources)), str(row.target), "rests" if row.rests else str(row.answer or ""))
        for row in WORKFLOW.rows
    ]
    assert told == real


@pytest.mark.parametrize("document", documents())
def test_links_and_named_modules_exist(document: str) -> None:
    text = prose(document)
    folder = (ROOT / document).parent
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("http") or (folder / link).exists(), f"{document}: {link}"
    for path in re.findall(r"`((?:haru_fsm|states|tools|data|tests)/[\w/.]*)`", text):
        assert (ROOT / path).exists(), f"{document}: {path}"


def test_every_part_of_the_engine_is_in_the_house() -> None:
    house = " ".join(cell for row in table("docs/design.md", "| part | is |") for cell in row)
    told = set(re.findall(r"haru_fsm/(\w+)", house))
    real = {path.stem for path in (ROOT / "haru_fsm").iterdir() if path.suffix in ("", ".py")}
    assert {part for part in real if not part.startswith("_")} <= told


@pytest.mark.parametrize("document", documents())
def test_no_paths_of_a_machine(document: str) -> None:
    assert not re.search(r"/(?:work|tmp|home|Users|root)/", text_of(document))


def test_the_changelog_knows_this_version() -> None:
    assert f"## {__version__}" in text_of("CHANGELOG.md")
