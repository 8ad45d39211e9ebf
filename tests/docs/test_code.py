"""The code in the documents runs, and prints what the documents say."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.reading import ROOT, Block, Typed, blocks, documents, session, write_files

PYTHON = [block for document in documents() for block in blocks(document, "python")]
CONSOLES = [document for document in documents() if document != "README.ko.md" and blocks(document, "console")]
"""The Korean README has the English one's blocks: another test holds them equal."""
MINTED = re.compile(r"c-[0-9a-f]{10}|HT-[0-9]{10}")
"""Ids of conversations and tickets, which are new in each run."""


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_runs(block: Block, tmp_path: Path, environment: dict[str, str]) -> None:
    write_files(block.document, tmp_path)
    script = tmp_path / "block.py"
    script.write_text(block.text, "utf-8")
    ended = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, f"{block}\n{ended.stderr}"


@pytest.mark.parametrize("document", CONSOLES)
def test_what_is_typed_prints_what_is_said(document: str, tmp_path: Path, environment: dict[str, str]) -> None:
    """A document from its first prompt to its last, in one shell. The starter's own memory is left as it was."""
    write_files(document, tmp_path)
    ids: dict[str, str] = {}
    memory = sorted(path.name for path in (ROOT / "memory_store").iterdir())
    typed = [(block, line) for block in blocks(document, "console") for line in session(block)]
    for block, line in typed:
        if line.command.startswith("export "):
            name, _, value = line.command.removeprefix("export ").partition("=")
            environment[name] = value
        else:
            ids |= _played(f"{block}: {line.command}", line, ids, tmp_path, environment)
    assert sorted(path.name for path in (ROOT / "memory_store").iterdir()) == memory


def _played(where: str, typed: Typed, ids: dict[str, str], folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Type it; what it prints must fit what is said. Returns the ids that were new: the document's, and the real one."""
    ended = subprocess.run(
        ["bash", "-c", MINTED.sub(lambda match: ids[match[0]], typed.command)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, f"{where} ended with {ended.returncode}\n{ended.stdout}"
    found = re.fullmatch(_pattern(typed.printed, ids), _tidy(ended.stdout.splitlines()))
    assert found, f"{where} printed\n{ended.stdout}"
    return {name.replace("_", "-", 1): value for name, value in found.groupdict().items()}


def _pattern(lines: tuple[str, ...], known: dict[str, str]) -> str:
    """What must be printed, as a pattern. `...` stands for any lines where it is a line, else for anything in its line."""
    text = _tidy(list(lines))
    named: set[str] = set()

    def minted(match: re.Match[str]) -> str:
        if match[0] in known:
            return re.escape(known[match[0]])
        name = match[0].replace("-", "_")
        if name in named:
            return f"(?P={name})"
        named.add(name)
        return f"(?P<{name}>{'HT-[0-9]{10}' if name.startswith('HT') else 'c-[0-9a-f]{10}'})"

    parts = []
    for line in text.splitlines():
        if line == "...":
            parts.append(r"(?:[^\n]*\n)*?")
            continue
        pieces = [
            "".join(
                minted(match) if (match := MINTED.fullmatch(bit)) else re.escape(bit)
                for bit in re.split(f"({MINTED.pattern})", piece)
            )
            for piece in line.split("...")
        ]
        parts.append(r"[^\n]*".join(pieces) + r"\n")
    return "".join(parts) if text else r"[\s\S]*"


def _tidy(lines: list[str]) -> str:
    """Lines without stray blanks and without empty lines; each ends with a newline."""
    kept = [" ".join(line.split()) for line in lines]
    return "".join(f"{line}\n" for line in kept if line)


def test_killed_and_carried_on(tmp_path: Path, environment: dict[str, str]) -> None:
    """The tour's second stop: SIGKILL while a tool waits for a slow carrier, then `haru resume --all`."""
    block = next(block for block in blocks("README.md", "sh") if "kill -9" in block.text)
    asked = block.text.partition(" & ")[0]
    with subprocess.Popen(
        ["bash", "-c", f"exec {asked}"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as asking:
        assert asking.stdout is not None
        assert "track_parcel" in asking.stdout.readline()
        asking.send_signal(signal.SIGKILL)
    told = [
        subprocess.run(
            ["haru", *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout
        for words in (["list", "--unfinished"], ["resume", "--all"], ["list", "--unfinished"])
    ]
    assert "EXECUTE_TOOLS (unfinished)" in told[0]
    assert "1 carried on, 0 failed." in told[1]
    assert "EXECUTE_TOOLS" not in told[2]
