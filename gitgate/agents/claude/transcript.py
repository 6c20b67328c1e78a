"""Agents: a Claude Code transcript made small and clean enough to be kept and taken up on another machine. Pure.

A transcript is a tree of records, one JSON object a line, linked by `parentUuid`. Only what the model was told and said
is kept; everything else (snapshots of prompts, requests, costs, and `worktree-state`, which would send a resumed agent
back into the old directory) goes, and each kept record is linked to its nearest kept ancestor, so that the tree keeps
its shape: parallel tool calls and abandoned branches are forks in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import Failure
from ...model.gate import SavedSession, SessionRef
from ...store import private_folder, write_private
from ...text.secrets import redact, secret_values
from ..agent import home_folder, need_session_id, no_conversation

Record = dict[str, Any]

MOST = 4_000_000
# Written by the program for itself: links, ids and labels that it must find again as they were.
STRUCTURE = frozenset(
    """uuid parentUuid logicalParentUuid sessionId agentId promptId requestId sourceToolAssistantUUID toolUseID type subtype
    timestamp version userType entrypoint isSidechain isMeta isCompactSummary isVisibleInTranscriptOnly permissionMode level
    isApiErrorMessage compactMetadata""".split()
)
MESSAGE_STRUCTURE = frozenset(
    "id type role model usage stop_reason stop_sequence container context_management".split()
)
# Attachments that carry a call to take up again, or words that the model was told.
ATTACHMENTS = frozenset(("hook_deferred_tool", "queued_command", "hook_additional_context"))
# The program's own copy of a tool's result, for its screen: kept while it is small.
COPY_MOST = 8_000
PICTURE_MOST = 250_000
# How long one text may be, tried in turn until the whole fits.
CUTS = (None, 20_000, 4_000, 1_000)


def slim(
    transcript: bytes, values: Collection[str] = (), most: int = MOST, *, asides: bool = False
) -> bytes | None:
    """The conversation without secrets and ballast, at most `most` bytes; None if it cannot be made that small.

    Doing it twice changes nothing. With `asides` it is a subagent's, whose every record is marked as an aside.
    """
    records = _after_last_summary([record for line in transcript.splitlines() if (record := _record(line))])
    parents = {
        record["uuid"]: record.get("parentUuid") for record in records if isinstance(record.get("uuid"), str)
    }
    told = [record for record in records if _is_told(record, asides=asides)]
    for longest in CUTS:
        kept = [
            clean for record in told if (clean := _clean(record, Cleaner(values, longest), longest is None))
        ]
        out = b"".join(
            json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in _relink(kept, parents)
        )
        if len(out) <= most:
            return out
    return None


def _record(line: bytes) -> Record | None:
    """One line, or None when it is none: the last one may have been cut short."""
    if b"{" not in line:
        return None
    try:
        found = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _after_last_summary(records: list[Record]) -> list[Record]:
    """Return the records since the conversation was last summed up; earlier ones are no longer sent to the model."""
    for index in range(len(records) - 1, -1, -1):
        if _is_summary(records[index]):
            metadata = records[index].get("compactMetadata") or {}
            # A summary may name earlier records that stay part of the conversation.
            keeps_earlier = not isinstance(metadata, dict) or any(
                "preserved" in key.lower() for key in metadata
            )
            return records if keeps_earlier else records[index:]
    return records


def _is_summary(record: Record) -> bool:
    return record.get("type") == "system" and record.get("subtype") == "compact_boundary"


def _is_told(record: Record, *, asides: bool) -> bool:
    if (record.get("isSidechain") and not asides) or not isinstance(record.get("uuid"), str):
        return False
    if record.get("type") in ("user", "assistant"):
        return isinstance(record.get("message"), dict)
    attachment = record.get("attachment")
    if record.get("type") == "attachment" and isinstance(attachment, dict):
        return str(attachment.get("type")) in ATTACHMENTS
    return _is_summary(record)


def _relink(kept: Iterable[Record], parents: Mapping[str, object]) -> list[Record]:
    """Each record with its nearest kept ancestor as parent."""
    kept = list(kept)
    names = {record["uuid"] for record in kept}
    for record in kept:
        seen: set[str] = {record["uuid"]}
        parent = record.get("parentUuid")
        while isinstance(parent, str) and parent not in names and parent not in seen:
            seen.add(parent)
            parent = parents.get(parent)
        record["parentUuid"] = parent if parent != record["uuid"] and str(parent) in names else None
    return kept


@dataclass(frozen=True)
class Cleaner:
    """Redacts a text, and cuts it where `longest` says so."""

    values: Collection[str]
    longest: int | None

    def redact(self, text: str) -> str:
        return redact(text, self.values)

    def __call__(self, text: str) -> str:
        text = self.redact(text)
        if self.longest is None or len(text) <= self.longest:
            return text
        return (
            f"{text[: self.longest]}\n[{len(text) - self.longest} more characters are not in the saved copy]"
        )


def _clean(record: Record, text: Cleaner, with_copies: bool) -> Record | None:
    """A copy of the record without secrets; None when nothing of its message is left."""
    try:
        clean: Record = {}
        for key, value in record.items():
            if key == "message":
                clean[key] = _clean_message(value, text)
            elif key == "toolUseResult":
                copy = _deep(value, text)
                if with_copies and len(json.dumps(copy)) <= COPY_MOST:
                    clean[key] = copy
            else:
                clean[key] = value if key in STRUCTURE else _deep(value, text)
    except RecursionError:
        return None
    return None if "message" in clean and clean["message"].get("content") == [] else clean


def _clean_message(message: Record, text: Cleaner) -> Record:
    clean = {
        key: value if key in MESSAGE_STRUCTURE else _deep(value, text)
        for key, value in message.items()
        if key != "content"
    }
    return {**clean, "content": _clean_content(message.get("content"), text)}


def _clean_content(content: object, text: Cleaner) -> object:
    if isinstance(content, list):
        return [clean for block in content if (clean := _clean_block(block, text)) is not None]
    return _deep(content, text)


def _clean_block(block: object, text: Cleaner) -> object:
    if not isinstance(block, dict):
        return _deep(block, text)
    kind = block.get("type")
    if kind in ("thinking", "redacted_thinking"):
        # It is signed: changed it would be refused, so it stays whole or goes.
        thought = str(block.get("thinking", ""))
        return block if text.redact(thought) == thought else None
    if kind in ("image", "document"):
        return _clean_picture(block, text)
    kept = {key: block[key] for key in ("type", "id", "tool_use_id") if key in block}
    rest = {key: value for key, value in block.items() if key not in kept}
    content = {"content": _clean_content(rest.pop("content"), text)} if "content" in rest else {}
    return {**kept, **{key: _deep(value, text) for key, value in rest.items()}, **content}


def _clean_picture(block: Record, text: Cleaner) -> Record:
    source = block.get("source")
    if (
        isinstance(source, dict)
        and len(str(source.get("data", ""))) <= PICTURE_MOST
        and source.get("type") == "base64"
    ):
        return block
    if isinstance(source, dict) and source.get("type") == "text":
        return {**block, "source": _deep(source, text)}
    return {"type": "text", "text": f"[{block['type']}: not in the saved copy]"}


def _deep(value: object, text: Cleaner) -> object:
    """Every string inside, the keys of mappings included."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [_deep(item, text) for item in value]
    if isinstance(value, dict):
        return {text(key): _deep(item, text) for key, item in value.items()}
    return value


def waits_at_call(conversation: bytes) -> bool:
    """Return whether the last deferred call has no result yet: only then is it made when the conversation goes on."""
    call, done = "", set()
    for line in conversation.splitlines():
        if b"hook_deferred_tool" not in line and b"tool_result" not in line:
            continue
        record = _record(line) or {}
        attachment, message = record.get("attachment"), record.get("message")
        if isinstance(attachment, dict) and attachment.get("type") == "hook_deferred_tool":
            call = str(attachment.get("toolUseID"))
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else []
        done |= {str(block.get("tool_use_id")) for block in blocks if isinstance(block, dict)}
    return bool(call) and call not in done


def prompts(conversation: bytes) -> list[str]:
    """Return the texts that were sent to the agent, the last first."""
    said = []
    for line in conversation.splitlines():
        record = _record(line) if b'"user"' in line else None
        message = record.get("message") if record else None
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            said.append(content)
        blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        said += [text for block in blocks if isinstance(text := block.get("text"), str)]
    return said[::-1]


NAME_MOST = 200
TRANSCRIPT = "transcript.jsonl"
READ_MOST = 256_000_000
SIDE_FILE_MOST, SIDE_FILES_MOST = 250_000, 1_000_000
# What a saved session may hold besides the transcript; a name that does not fit is never written.
SIDE_FILE = re.compile(
    r"subagents/agent-[A-Za-z0-9_-]{1,80}(?:\.jsonl|\.meta\.json)|tool-results/[A-Za-z0-9][\w.-]{0,120}\.txt|tasks/[A-Za-z0-9_-]{1,80}\.json"
)


def encode(directory: str) -> str:
    """A working directory as Claude Code spells it: every UTF-16 unit that is no ASCII letter or digit becomes a dash."""
    units = directory.encode("utf-16-le", "surrogatepass")
    codes = [units[at] | units[at + 1] << 8 for at in range(0, len(units), 2)]
    name = "".join(chr(code) if code < 128 and chr(code).isalnum() else "-" for code in codes)
    if len(name) <= NAME_MOST:
        return name
    return f"{name[:NAME_MOST]}-{_base36(abs(_java_hash(codes)))}"


def _java_hash(codes: list[int]) -> int:
    value = 0
    for code in codes:
        value = (value * 31 + code) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits or "0"


def config_home(env: Mapping[str, str]) -> Path:
    return Path(env["CLAUDE_CONFIG_DIR"]) if env.get("CLAUDE_CONFIG_DIR") else home_folder(env) / ".claude"


def project_folder(env: Mapping[str, str], cwd: Path) -> Path:
    return config_home(env) / "projects" / encode(os.path.realpath(cwd))


def find_transcript(session: SessionRef, env: Mapping[str, str]) -> Path | None:
    """The conversation's file: the one that was named, else the newest of that id in any project."""
    need_session_id(session.id)
    named = Path(session.transcript)
    if session.transcript and named.name == f"{session.id}.jsonl" and named.is_file():
        return named
    # The directory now need not be the one that the session began in.
    found = [path for path in (config_home(env) / "projects").glob(f"*/{session.id}.jsonl") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def still_waits(session: SessionRef, cwd: Path, env: Mapping[str, str]) -> bool:
    """Return whether the conversation, as it is found from `cwd`, waits at a call; True for one that cannot be read,
    which may.
    """
    name = f"{need_session_id(session.id)}.jsonl"
    try:
        here = project_folder(env, cwd) / name
        return waits_at_call((here if here.is_file() else find_transcript(session, env) or here).read_bytes())
    except (OSError, Failure):
        return True


def collect(session: SessionRef, env: Mapping[str, str], most: int) -> SavedSession:
    transcript = find_transcript(session, env)
    if transcript is None:
        return SavedSession(
            session.agent, session.id, session.directory, left_out=((TRANSCRIPT, "it was not found"),)
        )
    place = transcript.with_suffix("")
    values = secret_values(env)
    conversation = (
        None if transcript.stat().st_size > READ_MOST else slim(transcript.read_bytes(), values, most)
    )
    if conversation is None:
        why = f"it is larger than {most / 1e6:g} MB even without its long parts"
        return SavedSession(
            session.agent, session.id, session.directory, str(place), left_out=((TRANSCRIPT, why),)
        )
    files = {TRANSCRIPT: conversation}
    left_out = []
    room = min(SIDE_FILES_MOST, most - len(conversation))
    for name, path in _side_files(place, config_home(env) / "tasks" / session.id):
        content = _side_content(name, path, values)
        if content is None or len(content) > room:
            left_out.append((name, "it is too large"))
        else:
            files[name] = content
            room -= len(content)
    return SavedSession(session.agent, session.id, session.directory, str(place), files, tuple(left_out))


def _side_files(place: Path, tasks: Path) -> Iterator[tuple[str, Path]]:
    """Small things first come first: sorted by name, links and everything of another shape passed over."""
    folders = {"subagents": place / "subagents", "tasks": tasks, "tool-results": place / "tool-results"}
    for kind, folder in folders.items():
        if folder.is_dir() and not folder.is_symlink():
            for path in sorted(folder.iterdir()):
                name = f"{kind}/{path.name}"
                if SIDE_FILE.fullmatch(name) and path.is_file() and not path.is_symlink():
                    yield name, path


def _side_content(name: str, path: Path, values: frozenset[str]) -> bytes | None:
    if name.endswith(".jsonl"):
        large = path.stat().st_size > READ_MOST
        return None if large else slim(path.read_bytes(), values, SIDE_FILE_MOST, asides=True)
    if path.stat().st_size > SIDE_FILE_MOST:
        return None
    return redact(path.read_text(encoding="utf-8", errors="replace"), values).encode()


def place(saved: SavedSession, cwd: Path, env: Mapping[str, str]) -> None:
    """Write the conversation where it is looked for from `cwd`; one that has gone on there meanwhile is left alone."""
    need_session_id(saved.id)
    target = project_folder(env, cwd) / f"{saved.id}.jsonl"
    # Whoever pushed the session may have written it: only what a slimmed one holds gets through.
    conversation = slim(saved.files.get(TRANSCRIPT, b""), (), READ_MOST)
    if not conversation:
        raise no_conversation(saved)
    if target.is_file():
        if last_record(conversation) in target.read_bytes():
            return
        target.replace(target.with_suffix(".jsonl.before"))
    here = target.with_suffix("")
    _write(target, _moved(conversation, saved.place, str(here)))
    for name, content in saved.files.items():
        if SIDE_FILE.fullmatch(name):
            clean = slim(content, (), READ_MOST, asides=True) if name.endswith(".jsonl") else content
            _write(
                _side_place(name, here, config_home(env) / "tasks" / saved.id),
                _moved(clean or b"", saved.place, str(here)),
            )


def erase(session: str, cwd: Path, env: Mapping[str, str]) -> None:
    """The conversation that ran in `cwd`, with all that lies beside it; the folder of the directory, where nothing else is in it."""
    folder = project_folder(env, cwd)
    target = folder / f"{need_session_id(session)}.jsonl"
    for place in (target, target.with_suffix(".jsonl.before")):
        place.unlink(missing_ok=True)
    for folder_of_it in (target.with_suffix(""), config_home(env) / "tasks" / session):
        shutil.rmtree(folder_of_it, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


def _side_place(name: str, here: Path, tasks: Path) -> Path:
    kind, _, rest = name.partition("/")
    return tasks / rest if kind == "tasks" else here / kind / rest


def last_record(conversation: bytes) -> bytes:
    """The id of the last record: a file that has it went on from there, or is the original."""
    return b'"uuid":' + json.dumps(json.loads(conversation.splitlines()[-1])["uuid"]).encode()


def _moved(content: bytes, before: str, here: str) -> bytes:
    """The conversation names long output by its path; a path that JSON would spell otherwise is left as it is."""
    if (
        not before.startswith("/")
        or len(before) < 8
        or re.search(r'[\x00-\x1f"\\\ud800-\udfff]', before + here)
    ):
        return content
    return content.replace(before.encode(), here.encode())


def _write(target: Path, content: bytes) -> None:
    private_folder(target.parent)
    write_private(target, content)
