"""Agents: where Claude Code keeps a conversation, and what of it is worth keeping.

`<config>/projects/<enc>/<id>.jsonl` is the transcript, `<enc>` the working directory spelt as a file name. Beside it,
`<id>/subagents/` and `<id>/tool-results/` hold what subagents said and long output; `<config>/tasks/<id>/` the agent's
own list of tasks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..core.secrets import redact, secret_values
from ..core.session import SavedSession, SessionRef
from ..core.transcript import slim, waits_at_call
from ..errors import Failure
from .agent import home_of, need_session_id

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
    return Path(env["CLAUDE_CONFIG_DIR"]) if env.get("CLAUDE_CONFIG_DIR") else home_of(env) / ".claude"


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
    """Whether the conversation, as it is found from `cwd`, stands at a call that waits; one that cannot be read may."""
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
        raise Failure(
            f"the saved session {saved.id[:8]} holds no conversation",
            hint="read the answer yourself: git gate list --all",
        )
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
    """All of it or nothing, for our eyes only."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
    new.replace(target)
