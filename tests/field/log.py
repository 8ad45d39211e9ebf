"""What the tools of a case did, told over all processes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Log:
    """What the tools of a case did, one JSON object for each line."""

    file: Path

    def write(self, what: str, name: str, args: dict[str, Any]) -> None:
        """`what`: begun, or done (an effect took place)."""
        line = json.dumps({"what": what, "name": name, "args": args}, ensure_ascii=False)
        descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def read(self, what: str, name: str | None = None) -> list[dict[str, Any]]:
        """The arguments of each time, in order."""
        lines = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        entries = [json.loads(line) for line in lines]
        return [each["args"] for each in entries if each["what"] == what and name in (None, each["name"])]
