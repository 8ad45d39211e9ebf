"""`python -m bench.wire_server`: a server that speaks like Gemini and thinks of nothing. It prints its port.

A process of its own, so that it takes no turn of the interpreter that is measured; and headers and body go out in one
write, or the socket's delays would hide everything.
"""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

ANSWER = "확인이 끝났습니다. 모든 주문이 예정대로 배송되고 있습니다."
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}


def main() -> None:
    """Serve until killed, a thread for each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            connection, _ = listening.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_serve, args=(connection,), daemon=True).start()


def _serve(connection: socket.socket) -> None:
    whole, streamed = _whole(), _streamed()
    with connection, connection.makefile("rb") as requests:
        while line := requests.readline():
            length = 0
            while (header := requests.readline().strip()) != b"":
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            requests.read(length)
            connection.sendall(streamed if b"streamGenerateContent" in line else whole)


def _reply(text: str, **more: Any) -> bytes:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **more}
    return json.dumps({"candidates": [candidate], "usageMetadata": USAGE}).encode()


def _whole() -> bytes:
    body = _reply(ANSWER, finishReason="STOP")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _streamed() -> bytes:
    half = len(ANSWER) // 2
    events = [_reply(ANSWER[:half]), _reply(ANSWER[half:], finishReason="STOP")]
    chunks = (b"data: " + event + b"\r\n\r\n" for event in events)
    body = b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + body + b"0\r\n\r\n"


if __name__ == "__main__":
    main()
