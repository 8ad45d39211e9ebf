"""The lines of a stream of events, in the one form in which google-genai reads them.

The standard of such streams (https://html.spec.whatwg.org/multipage/server-sent-events.html) allows comments, which
gateways send to keep a connection alive, names and numbers of events, and no blank behind the colon. The SDK (3.6.1)
knows `data: ` alone, and takes everything else for the beginning of an error in JSON, which costs the whole reply.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

_NO_DATA = re.compile(rb":|(?:event|id|retry)(?::|[\r\n]*\Z)|data:? ?[\r\n]*\Z")
_DATA = re.compile(rb"\Adata:(?! )")


async def data_lines(received: Callable[[], AsyncGenerator[bytes, None]]) -> AsyncGenerator[bytes, None]:
    """What was received, line by line, without those that hold no data."""
    begun: list[bytes] = []  # a line may be long, and come in many pieces
    async with aclosing(received()) as pieces:
        async for piece in pieces:
            begun.append(piece)
            if b"\n" in piece or b"\r" in piece:
                lines, rest = _whole(b"".join(begun))
                begun = [rest]
                yield b"".join(lines)
    yield _read(b"".join(begun))


def _whole(text: bytes) -> tuple[list[bytes], bytes]:
    """The lines that have come to their end, as they are to be read, and the beginning of the next."""
    end = 1 + max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1))  # a last \r may be the first half of an end
    return [_read(line) for line in text[:end].splitlines(keepends=True)], text[end:]


def _read(line: bytes) -> bytes:
    """The line as the SDK reads it; nothing of one without data, for what is left of it would end an event."""
    line = line.removeprefix(codecs.BOM_UTF8)
    return b"" if _NO_DATA.match(line) else _DATA.sub(b"data: ", line)
