"""Agents: a model that has learnt its part, on loopback: it answers as Claude's Messages API does, by a function of what it is shown.

The demonstration gives it to the real Claude Code, which then needs no account, no key and no network. It remembers nothing
from one request to the next: what it goes on from is the conversation that the program sends along.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = Mapping[str, Any]
BODY_MOST = 32_000_000
NO_TOKENS = {"input_tokens": 1, "output_tokens": 1}


@dataclass(frozen=True)
class ModelLine:
    """What the model says next: a text, and a tool's name with its input, if one is to be called."""

    text: str
    tool: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)

    def blocks(self) -> list[dict[str, object]]:
        said: list[dict[str, object]] = [{"type": "text", "text": self.text}]
        if self.tool:
            # New every time: the program drops a call whose id it has seen.
            use = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": self.tool}
            said.append({**use, "input": dict(self.arguments)})
        return said


Part = Callable[[Sequence[Message]], ModelLine]


class RehearsedModel(ThreadingHTTPServer):
    """The model, listening. `shown` is the conversation of the last request."""

    daemon_threads = True

    def __init__(self, part: Part) -> None:
        super().__init__(("127.0.0.1", 0), ModelHandler)
        self.part = part
        self.shown: Sequence[Message] = ()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: the program drops its connections when it is done."""

    def reply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A whole message. Requests without tools are for titles and the like, and no part of the conversation."""
        line = ModelLine("A demonstration")
        if body.get("tools"):
            self.shown = list(body.get("messages") or ())
            line = self.part(self.shown)
        about = {"id": f"msg_{uuid.uuid4().hex[:24]}", "type": "message", "role": "assistant"}
        ending = {"stop_reason": "tool_use" if line.tool else "end_turn", "stop_sequence": None}
        return {**about, "model": body.get("model"), "content": line.blocks(), **ending, "usage": NO_TOKENS}


class ModelHandler(BaseHTTPRequestHandler):
    server: RehearsedModel

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: standard error is the demonstration's."""

    def do_HEAD(self) -> None:
        self.answer(200, "application/json", b"")

    def do_GET(self) -> None:
        self.answer(404, "application/json", b"{}")

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        path = self.path.partition("?")[0]
        if path != "/v1/messages" or size > BODY_MOST:
            known = path.endswith("/count_tokens")
            self.answer(200 if known else 404, "application/json", json.dumps(NO_TOKENS).encode())
            return
        body = json.loads(self.rfile.read(size))
        whole = self.server.reply(body)
        if body.get("stream"):
            sent = "".join(
                f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream(whole)
            )
            self.answer(200, "text/event-stream", sent.encode())
        else:
            self.answer(200, "application/json", json.dumps(whole).encode())

    def answer(self, status: int, kind: str, body: bytes) -> None:
        with contextlib.suppress(OSError):  # the program was ended, or gave up
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


def stream(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The message in the events by which the API streams it."""
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


@contextlib.contextmanager
def rehearsed(part: Part) -> Iterator[RehearsedModel]:
    """The model that plays `part`, for as long as this lasts. It listens on loopback only, and keeps no key that it is sent."""
    with RehearsedModel(part) as model:
        thread = threading.Thread(target=model.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()
