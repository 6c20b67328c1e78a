"""Lab: the scripted model, a program of its own: `server.py SCRIPT LOG PORT_FILE`, the Messages API on loopback.

It is started by `lab.model`, in a network of its own where the machine allows it, so it needs nothing but the
standard library. SCRIPT is a JSON list of replies; each is used once unless it says `repeat`. A request that offers
tools takes the first unused reply whose `when` (a regular expression) is found in the last user message, else the
first unused one without `when`. Requests without tools (titles, probes) get a canned text and use nothing up.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]
CHUNK = 300


def text_of(content: object) -> str:
    """All the text of a message's content, tool results included."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(block.get("text") or text_of(block.get("content")) for block in blocks)


class Script:
    def __init__(self, replies: list[Json]) -> None:
        self.left = list(replies)
        self.lock = threading.Lock()

    def take(self, body: Json) -> Json:
        users = [m for m in body.get("messages", []) if m.get("role") == "user"]
        said = text_of(users[-1]["content"]) if users else ""
        with self.lock:
            fits = [r for r in self.left if "when" in r and re.search(r["when"], said)]
            fits += [r for r in self.left if "when" not in r]
            reply = fits[0] if fits else {"text": "(the script has ended)", "repeat": True}
            if not reply.get("repeat"):
                self.left.remove(reply)
            return reply


def message(reply: Json, model: str) -> Json:
    """A whole assistant message. Ids are new every time: the CLI drops a tool call whose id it has seen."""
    blocks: list[Json] = [{"type": "text", "text": reply["text"]}] if reply.get("text") else []
    for name, arguments in reply.get("tools", []):
        blocks.append(
            {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": name, "input": arguments}
        )
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if reply.get("tools") else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 10,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def events(whole: Json) -> Iterator[Json]:
    """The message as the API streams it."""
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            yield {
                "type": "content_block_start",
                "index": index,
                "content_block": {"type": "text", "text": ""},
            }
            deltas = [{"type": "text_delta", "text": block["text"]}]
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            raw = json.dumps(block["input"])
            parts = [raw[at : at + CHUNK] for at in range(0, len(raw), CHUNK)]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: the CLI drops its connections when it is done."""

    def __init__(self, script: Script, log: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.log = log
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)

    def note(self, path: str, body: Json) -> None:
        """One line a request: what the model was shown. No header is kept: they hold the key."""
        kept = {key: body.get(key) for key in ("model", "system", "messages")}
        with self.lock, self.log.open("a", encoding="utf-8") as out:
            tools = [tool.get("name") for tool in body.get("tools") or []]
            out.write(json.dumps({"n": next(self.numbers), "path": path, "tools": tools, **kept}) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the log is the server's."""

    def answer(self, status: int, value: Json) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def do_HEAD(self) -> None:
        self.answer(200, {})

    def do_GET(self) -> None:
        self.server.note(self.path, {})
        self.answer(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})

    def do_POST(self) -> None:
        body: Json = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.split("?", 1)[0]
        self.server.note(path, body)
        if path != "/v1/messages":
            self.answer(200 if path.endswith("/count_tokens") else 404, {"input_tokens": 10})
            return
        title: Json = {"text": '{"title": "lab"}'}
        reply = self.server.script.take(body) if body.get("tools") else title
        time.sleep(reply.get("delay", 0))
        if reply.get("status"):
            self.answer(
                reply["status"],
                {"type": "error", "error": {"type": "api_error", "message": "scripted error"}},
            )
            return
        whole = message(reply, body.get("model", "lab"))
        if body.get("stream"):
            self.stream(whole)
        else:
            self.answer(200, whole)

    def stream(self, whole: Json) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for event in events(whole):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        except OSError:
            return  # the CLI was killed or gave up


def main() -> None:
    script, log, port_file = map(Path, sys.argv[1:4])
    server = Server(Script(json.loads(script.read_text("utf-8"))), log)
    ready = port_file.with_suffix(".new")
    ready.write_text(str(server.server_address[1]), "utf-8")
    ready.rename(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
