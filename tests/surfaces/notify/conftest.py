"""Surfaces: somebody to be told: a web address on loopback that keeps what it got, and a program that writes it down."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gitgate.gates import recording
from gitgate.surfaces.notify.sending import SendingResult, messenger_of
from support.resuming import Seat

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of the form that the specification asks for


@dataclass
class Listener:
    """A receiver of webhooks. It answers with `status`, and keeps the headers and the body of each request."""

    port: int = 0
    status: int = 204
    delay: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/secret-path"

    @property
    def said(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.got]


@pytest.fixture
def listener() -> Iterator[Listener]:
    listening = Listener()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            listening.got.append(({name.lower(): word for name, word in self.headers.items()}, body))
            time.sleep(listening.delay)
            self.send_response(listening.status)
            for name, word in listening.headers.items():
                self.send_header(name, word)
            with contextlib.suppress(OSError):  # who sent it may have been killed
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """What it got is kept already."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    listening.port = int(server.server_address[1])
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield listening
    server.shutdown()
    server.server_close()


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """No sender is started by itself; where one would have been is listed."""
    wanted: list[Path] = []
    monkeypatch.setattr(recording, "start_sender", lambda place, _env, _log: wanted.append(place))
    return wanted


@pytest.fixture
def told(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """What the program `hear` was told; its address is `command` and its path, `tmp_path / "hear"`."""
    program = tmp_path / "hear"
    program.write_text(
        f'#!/bin/sh\n{{ cat; }} >> {tmp_path}/heard\necho "$GITGATE_EVENT $GITGATE_ID" >> {tmp_path}/names\n'
    )
    program.chmod(0o755)

    def read() -> list[dict[str, Any]]:
        place = tmp_path / "heard"
        return [json.loads(line) for line in place.read_text("utf-8").splitlines()] if place.exists() else []

    return read


def send(seat: Seat) -> SendingResult:
    """Everything that is due at this seat."""
    sender = messenger_of(seat.desk)
    try:
        done = sender.run()
    finally:
        sender.outbox.close()
    assert done is not None
    return done
