"""A local HTTP server for tests, on asyncio streams: it reads requests and lets a function answer them, well or badly.

Bad answers are the point: `Answer` says what goes over the wire to the byte, and a `Fault` where the wire breaks.
Headers and body leave in one write; otherwise the delays of sockets (Nagle, delayed acknowledgements) would hide
whatever a benchmark wants to see.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Fault(StrEnum):
    """Where an answer breaks off."""

    CLOSE = "close"
    """The connection is closed without a word."""
    RESET = "reset"
    """The connection is reset (TCP RST)."""
    TRUNCATE = "truncate"
    """Half of the body is sent, less than the headers have promised, then the connection is closed."""
    HANG = "hang"
    """Nothing is sent, and nothing closed, until the client gives up."""
    STALL = "stall"
    """Half of the pieces (or of the only one) are sent, and then nothing, until the client gives up."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send. The `pieces` of the body are sent at once, or with `pause_s` seconds between them."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[bytes, ...] = ()
    pause_s: float = 0.0
    fault: Fault | None = None


Answering = Callable[[Request], Awaitable[Answer]]


class LocalServer:
    """Serves `answer` on a free local port, while it is entered: `async with`, or `with` (then in a thread).

    `abandoned` counts the requests whose client went away before it had its answer.
    """

    def __init__(self, answer: Answering) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.base_url = ""
        self.abandoned = 0

    # -- in the loop of whoever enters

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    # -- in a loop of its own

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="local-http", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.__aenter__(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._thread is not None
        asyncio.run_coroutine_threadsafe(self.__aexit__(kind, error, trace), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- connections

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                if not await self._send(await self._answer(request), reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            self.abandoned += 1
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send the answer; whether the connection may be used again."""
        match answer.fault:
            case Fault.CLOSE:
                return False
            case Fault.RESET:
                _reset(writer)
                return False
            case Fault.HANG:
                await self._wait_until_gone(reader)
                return False
        await _write(answer, writer)
        if answer.fault is Fault.STALL:
            await self._wait_until_gone(reader)
        return answer.fault is None

    async def _wait_until_gone(self, reader: asyncio.StreamReader) -> None:
        while await reader.read(1 << 16):
            pass
        self.abandoned += 1


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, or None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close such that the other side sees a reset: lingering for zero seconds drops what is unsent."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _write(answer: Answer, writer: asyncio.StreamWriter) -> None:
    promised = sum(map(len, answer.pieces))
    headers = {"content-type": "application/json", **answer.headers, "content-length": str(promised)}
    head = f"HTTP/1.1 {answer.status} {_phrase(answer.status)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    if not answer.pause_s or answer.fault is Fault.TRUNCATE:
        writer.write(head.encode("latin-1") + _sent(answer))
        await writer.drain()
        return
    writer.write(head.encode("latin-1"))
    for piece in _pieces(answer):
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(answer.pause_s)


def _sent(answer: Answer) -> bytes:
    body = b"".join(_pieces(answer))
    return body[: len(body) // 2] if answer.fault is Fault.TRUNCATE else body


def _pieces(answer: Answer) -> tuple[bytes, ...]:
    if answer.fault is not Fault.STALL:
        return answer.pieces
    if len(answer.pieces) == 1:
        return (answer.pieces[0][: len(answer.pieces[0]) // 2],)
    return answer.pieces[: len(answer.pieces) // 2]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
