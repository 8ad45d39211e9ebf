"""Reading Markdown as these tests need it: fenced blocks, tables, and what is typed at a prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FACES = ("README.md", "README.ko.md")
PROMPT = "$ "

_NAME = re.compile(r"# (\w+\.py)\n")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, its language and its text."""

    document: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


@dataclass(frozen=True)
class Typed:
    """A command and what the document says is printed after it."""

    command: str
    printed: tuple[str, ...]


def documents() -> list[str]:
    """Every document that we write for people, by its name in the repository."""
    return sorted([*FACES, "CHANGELOG.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])


def write_files(document: str, folder: Path) -> list[Path]:
    """Its blocks that are files, for their first line is a comment with a name: written where they belong."""
    written: list[Path] = []
    for block in blocks(document, "python"):
        if named := _NAME.match(block.text):
            path = folder / named[1]
            path.write_text(block.text, "utf-8")
            written.append(path)
    return written


def prose(document: str) -> str:
    """Its text without blocks of code, fenced or indented."""
    lines = _FENCE.sub("", text_of(document)).splitlines()
    return "\n".join(line for line in lines if not line.startswith("    "))


def text_of(document: str) -> str:
    """The text of a document."""
    return (ROOT / document).read_text("utf-8")


def blocks(document: str, language: str | None = None) -> list[Block]:
    """Its fenced blocks, in order; only those of one language, if one is given."""
    text = text_of(document)
    found = (
        Block(document, text.count("\n", 0, match.start()) + 1, match[1], match[2]) for match in _FENCE.finditer(text)
    )
    return [block for block in found if language in (None, block.language)]


def session(block: Block) -> list[Typed]:
    """A console block as commands, each with the lines that follow it."""
    typed: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith(PROMPT):
            typed.append((line.removeprefix(PROMPT), []))
        else:
            typed[-1][1].append(line)
    return [Typed(command, tuple(printed)) for command, printed in typed]


def table(document: str, head: str) -> list[list[str]]:
    """The cells of the rows of the table whose first line is `head`, without backticks."""
    lines = text_of(document).splitlines()
    start = lines.index(head) + 2
    rows: list[list[str]] = []
    for line in lines[start:]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])
    return rows


def commands_typed(document: str) -> list[str]:
    """Everything that stands after the word `haru` in code: at prompts, in scripts, and in backticks."""
    lines = [
        line for block in blocks(document) if block.language in ("console", "sh") for line in block.text.split("\n")
    ]
    typed = [line.removeprefix(PROMPT) for line in lines if line.startswith((PROMPT + "haru ", "haru "))]
    typed += [code for code in re.findall(r"`([^`\n]+)`", prose(document)) if code.startswith("haru ")]
    return [re.split(r" & | # |  +#", line)[0].removeprefix("haru ").strip() for line in typed]
