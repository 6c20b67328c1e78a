"""Lab: the scripted model, a program of its own: `server.py SCRIPT LOG PORT_FILE`, on loopback. It speaks what agents' programs
speak with their models: Messages, Responses, Chat Completions, and Gemini's way, each by its address.

It is started by `lab.model`, in a network of its own where the machine allows it, so it needs nothing but the
standard library. SCRIPT is a JSON list of replies; each is used once unless it says `repeat`. A request that offers
tools takes the first unused reply whose `when` (a regular expression) is found in what was said last to the model, else the
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

    def take(self, said: str) -> Json:
        with self.lock:
            fits = [r for r in self.left if "when" in r and re.search(r["when"], said)]
            fits += [r for r in self.left if "when" not in r]
            reply = fits[0] if fits else {"text": "(the script has ended)", "repeat": True}
            if not reply.get("repeat"):
                self.left.remove(reply)
            return reply


class Dialect:
    """How one kind of model is asked, and answers. `rows` are the events of an answer that is streamed."""

    address = ""
    heard = "messages"  # where a request has what was said
    canned = '{"title": "lab"}'

    def said_last(self, body: Json) -> str:
        raise NotImplementedError

    def whole(self, reply: Json, body: Json) -> Json:
        raise NotImplementedError

    def rows(self, whole: Json) -> Iterator[tuple[str, Json | str]]:
        raise NotImplementedError

    def streams(self, body: Json, path: str) -> bool:  # noqa: ARG002  one says it by its address
        return bool(body.get("stream"))

    def tools(self, body: Json) -> list[str]:
        return [
            str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))
            for tool in body.get("tools") or []
        ]


class Messages(Dialect):
    address = "/messages"

    def said_last(self, body: Json) -> str:
        users = [m for m in body.get("messages", []) if m.get("role") == "user"]
        return text_of(users[-1]["content"]) if users else ""

    def whole(self, reply: Json, body: Json) -> Json:
        return message(reply, body.get("model", "lab"))

    def rows(self, whole: Json) -> Iterator[tuple[str, Json | str]]:
        return ((event["type"], event) for event in events(whole))


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


class Responses(Dialect):
    address = "/responses"
    heard = "input"

    def said_last(self, body: Json) -> str:
        """All that stands after the model's own last words or calls."""
        given = body.get("input", [])
        if isinstance(given, str):
            return given
        new: list[str] = []
        for item in reversed(given):
            kind = item.get("type", "message")
            if item.get("role") == "assistant" or kind in ("function_call", "custom_tool_call", "reasoning"):
                break
            new.append(text_of(item.get("content")) if kind == "message" else json.dumps(item.get("output")))
        return "\n".join(reversed(new))

    def whole(self, reply: Json, body: Json) -> Json:
        items: list[Json] = []
        if reply.get("text"):
            words = {"type": "output_text", "text": reply["text"], "annotations": []}
            items.append({"type": "message", "id": new_id("msg"), "role": "assistant", "content": [words]})
        for name, arguments in reply.get("tools", []):
            called = {"type": "function_call", "id": new_id("fc"), "call_id": new_id("call"), "name": name}
            items.append({**called, "arguments": json.dumps(arguments)})
        items = [{**item, "status": "completed"} for item in items]
        counts = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
        head = {
            "id": new_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "model": body.get("model"),
        }
        return {**head, "status": "completed", "output": items, "usage": counts, "error": None}

    def rows(self, whole: Json) -> Iterator[tuple[str, Json | str]]:
        yield typed(
            "response.created", response={**whole, "status": "in_progress", "output": [], "usage": None}
        )
        for index, item in enumerate(whole["output"]):
            begun = {**item, "status": "in_progress", **({"content": []} if "content" in item else {})}
            yield typed("response.output_item.added", output_index=index, item=begun)
            where = {"item_id": item["id"], "output_index": index}
            if "content" in item:
                text = item["content"][0]["text"]
                yield typed("response.output_text.delta", **where, content_index=0, delta=text)
            else:
                yield typed("response.function_call_arguments.delta", **where, delta=item["arguments"])
            yield typed("response.output_item.done", output_index=index, item=item)
        yield typed("response.completed", response=whole)


class Chat(Dialect):
    address = "/chat/completions"

    def said_last(self, body: Json) -> str:
        new: list[str] = []
        for item in reversed(body.get("messages", [])):
            if item.get("role") == "assistant":
                break
            new.append(text_of(item.get("content")))
        return "\n".join(reversed(new))

    def whole(self, reply: Json, body: Json) -> Json:
        calls = [
            {
                "id": new_id("call"),
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for name, given in reply.get("tools", [])
        ]
        said: Json = {"role": "assistant", "content": reply.get("text", "")}
        choice = {"index": 0, "message": {**said, **({"tool_calls": calls} if calls else {})}}
        counts = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        head = {"id": new_id("chatcmpl"), "object": "chat.completion", "created": int(time.time())}
        ending = {"finish_reason": "tool_calls" if calls else "stop"}
        return {**head, "model": body.get("model"), "choices": [{**choice, **ending}], "usage": counts}

    def rows(self, whole: Json) -> Iterator[tuple[str, Json | str]]:
        head = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        (choice,) = whole["choices"]
        said = choice["message"]
        pieces: list[Json] = [{"role": "assistant", "content": said["content"]}]
        pieces += [
            {"tool_calls": [{"index": n, **call}]} for n, call in enumerate(said.get("tool_calls", []))
        ]
        for piece in pieces:
            yield "", {**head, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]}
        yield "", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        yield "", {**head, "choices": [], "usage": whole["usage"]}
        yield "", "[DONE]"


class GeminiWay(Dialect):
    address = "enerateContent"  # `models/NAME:generateContent`, or `streamGenerateContent`
    heard = "contents"

    def said_last(self, body: Json) -> str:
        new: list[str] = []
        for item in reversed(body.get("contents", [])):
            if item.get("role") == "model":
                break
            new += [part.get("text") or json.dumps(part) for part in item.get("parts", [])]
        return "\n".join(reversed(new))

    def whole(self, reply: Json, body: Json) -> Json:  # noqa: ARG002  its address names the model
        parts: list[Json] = [{"text": reply["text"]}] if reply.get("text") else []
        for name, given in reply.get("tools", []):
            parts.append({"functionCall": {"name": name, "args": given, "id": new_id("fc")}})
        counts = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
        said = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        return {
            "candidates": [said],
            "usageMetadata": counts,
            "modelVersion": "lab",
            "responseId": new_id("r"),
        }

    def rows(self, whole: Json) -> Iterator[tuple[str, Json | str]]:
        yield "", whole

    def streams(self, body: Json, path: str) -> bool:  # noqa: ARG002
        return ":streamGenerateContent" in path

    def tools(self, body: Json) -> list[str]:
        listed = [tool.get("functionDeclarations") or [] for tool in body.get("tools") or []]
        return [str(one.get("name")) for some in listed for one in some]


DIALECTS = (Messages(), Responses(), Chat(), GeminiWay())


def typed(kind: str, **values: object) -> tuple[str, Json]:
    return kind, {"type": kind, **values}


def new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:24]}"


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

    def note(self, path: str, body: Json, dialect: Dialect | None = None) -> None:
        """One line a request: what the model was shown. No header is kept: they hold the key."""
        kept = {key: body.get(key) for key in ("model", "system")}
        kept["messages"] = body.get(dialect.heard if dialect else "messages")
        kept["tools"] = dialect.tools(body) if dialect else []
        with self.lock, self.log.open("a", encoding="utf-8") as out:
            kept["dialect"] = type(dialect).__name__ if dialect else ""
            out.write(json.dumps({"n": next(self.numbers), "path": path, **kept}) + "\n")


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
        path = self.path.partition("?")[0]
        self.server.note(path, {})
        if path.endswith("/models"):
            self.answer(200, {"object": "list", "data": [{"id": "lab", "object": "model"}], "models": []})
            return
        self.answer(404, {"type": "error", "error": {"type": "not_found_error", "message": path}})

    def body(self) -> Json:
        if "chunked" not in (self.headers.get("transfer-encoding") or ""):
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        else:
            raw = b""
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        found: Json = json.loads(raw or b"{}")
        return found

    def do_POST(self) -> None:
        body = self.body()
        path = self.path.partition("?")[0]
        dialect = next((one for one in DIALECTS if one.address in path.rpartition("/v1")[2]), None)
        if dialect is None or path.endswith(("/count_tokens", "countTokens")):
            self.server.note(path, body)
            counted = {"input_tokens": 10, "totalTokens": 10}
            self.answer(200 if path.endswith(("/count_tokens", "countTokens")) else 404, counted)
            return
        self.server.note(path, body, dialect)
        script = self.server.script
        reply: Json = script.take(dialect.said_last(body)) if body.get("tools") else {"text": dialect.canned}
        time.sleep(reply.get("delay", 0))
        if reply.get("status"):
            wrong = {"type": "api_error", "message": "scripted error", "code": reply["status"]}
            self.answer(reply["status"], {"type": "error", "error": wrong})
            return
        whole = dialect.whole(reply, body)
        if dialect.streams(body, path):
            self.stream(dialect.rows(whole))
        else:
            self.answer(200, whole)

    def stream(self, rows: Iterator[tuple[str, Json | str]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for event, row in rows:
                data = row if isinstance(row, str) else json.dumps(row)
                head = f"event: {event}\n" if event else ""
                self.wfile.write(f"{head}data: {data}\n\n".encode())
        except OSError:
            return  # the program was killed or gave up


def main() -> None:
    script, log, port_file = map(Path, sys.argv[1:4])
    server = Server(Script(json.loads(script.read_text("utf-8"))), log)
    ready = port_file.with_suffix(".new")
    ready.write_text(str(server.server_address[1]), "utf-8")
    ready.rename(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
