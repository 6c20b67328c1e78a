"""Model: an agent's saved session; how a conversation about a question is to be held, and how one was."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..document import MOST_READ, Field, Plain, dataclass, field, names_of, text_or_empty
from ..errors import Usage
from ..text import parse_duration
from . import SESSION_OUTCOMES, is_prefix

OUTCOMES = SESSION_OUTCOMES
# `words` stands in older records alone: nothing that is said in prose is read as an outcome.
SOURCES = ("command", "mcp", "file", "json", "words", "prompt", "person")
PROPOSED = "proposed"
LEFT = "left"  # somebody talked with the agent, and the gate waits as before
GRACE, SAVE_EVERY = 60, 300
MOST_TRANSCRIPT = 200_000  # bytes
MOST_STATUS, MOST_WORDS = 64, 32 * 1024
# It becomes an argument of the agent's command: it must not look like an option.
MODEL = r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}"
STATUS = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
# Words that other systems use for our fields.
ALIASES = {
    "system": ("systemPrompt", "system_prompt"),
    "mcp": ("mcpConfig", "mcp_config"),
    "transcript": ("captureTranscript", "capture_transcript"),
    "resume": ("resumeSession", "resume_session"),
    "save_every": ("saveEvery",),
}
SCHEMA_ALIASES = ("outcomeSchema", "outcome_schema")


@dataclass(frozen=True)
class Talk:
    """How a conversation is to be held. What its outcome may be stands in the question: its options, its schema."""

    outcome: str = "freeform"
    system: str = ""
    context: Plain = None
    model: str = ""
    cwd: str = ""
    mcp: Mapping[str, object] | None = None
    timeout: int | None = None
    grace: int = GRACE
    transcript: bool = False
    save_every: int = SAVE_EVERY
    resume: str = ""
    checkpoint: bool = False


# What may stand under `talk`, and under its `outcomeSchema`.
NAMES = (
    *names_of(Talk),
    *(word for words in ALIASES.values() for word in words),
    *SCHEMA_ALIASES,
)
OF_OUTCOME = ("type", "options", "schema")


@dataclass(frozen=True)
class Conversation:
    """How one was held: how it ended, how many seconds it took, and where its outcome was read.

    `confirmed` is false where nobody did. One that is only `proposed` says what (`value`), and by whose agent.
    `content` is the digest of the agent's own session as it was kept at the end.
    """

    outcome: str
    seconds: int
    status: str = ""
    summary: str = ""
    reason: str = ""
    message: str = ""
    source: str = ""
    confirmed: bool = True
    transcript: str = field(default="", repr=False)
    agent: str = ""
    value: Plain = None
    content: str = ""


def plain_talk(talk: Talk) -> dict[str, object]:
    """Its outcome, and what was set apart from that."""
    usual = Talk()
    said = {name: getattr(talk, name) for name in names_of(talk)}
    return {"outcome": said.pop("outcome"), **{n: v for n, v in said.items() if v != getattr(usual, n)}}


def parse_talk(item: Field) -> Talk:
    """The field `talk` of a question. `outcomeSchema` may say the outcome too, as `outcome_of` reads it."""
    timeout, grace, save, context, mcp = (
        aliased_field(item, n) for n in ("timeout", "grace", "save_every", "context", "mcp")
    )
    checkpoint, resume = flag(item, "checkpoint"), aliased_field(item, "resume")
    outcome = outcome_of(item) or ("approval" if checkpoint else "freeform")
    if checkpoint and outcome != "approval":
        item.need("checkpoint").fail(f"a checkpoint is an approval; the outcome here is {outcome}")
    system = aliased_field(item, "system")
    return Talk(
        outcome=outcome,
        system=system.text(most=MOST_READ) if system else "",
        context=context.plain() if context else None,
        model=parse_model(item),
        cwd=parse_cwd(item),
        mcp=parse_mcp(mcp) if mcp else None,
        timeout=seconds(timeout, 1) if timeout else None,
        grace=seconds(grace, 0) if grace else GRACE,
        transcript=flag(item, "transcript"),
        save_every=seconds(save, 0) if save else SAVE_EVERY,
        resume=parse_resume(resume) if resume else "",
        checkpoint=checkpoint,
    )


def outcome_of(item: Field) -> str:
    found = item.get("outcome")
    if found is None:
        described = aliased_schema(item)
        found = described.get("type") if described is not None else None
    return "" if found is None else found.one_of(OUTCOMES)


def aliased_schema(item: Field) -> Field | None:
    """`outcomeSchema: {type, options, schema}`, as other systems write it."""
    return next((f for name in SCHEMA_ALIASES if (f := item.get(name)) is not None), None)


def aliased_field(item: Field, name: str) -> Field | None:
    return next((f for n in (name, *ALIASES.get(name, ())) if (f := item.get(n)) is not None), None)


def flag(item: Field, name: str) -> bool:
    found = aliased_field(item, name)
    return found.boolean() if found is not None else False


def parse_model(item: Field) -> str:
    found = item.get("model")
    if found is None or found.value == "":
        return ""
    name = found.text(most=100)
    return name if re.fullmatch(MODEL, name) else found.fail("expected a model's name, such as sonnet")


def parse_cwd(item: Field) -> str:
    """A folder within the worktree, told with slashes; what leads out of it is refused."""
    found = item.get("cwd")
    if found is None:
        return ""
    text = found.text(most=1000)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    strange = text.startswith(("/", "~")) or "\\" in text or not text.isprintable() or ":" in text[:2]
    if strange or ".." in parts or any(part.casefold() == ".git" for part in parts):
        found.fail("expected a folder within the worktree, such as services/api")
    return "/".join(parts)


def parse_mcp(found: Field) -> Mapping[str, object]:
    """The content of an MCP configuration. It names commands, so nothing but a person's word ever starts them."""
    if isinstance(found.value, str):
        found.fail("expected what the MCP configuration says (a mapping), not the name of its file")
    servers = found.need("mcpServers").mapping()
    for server in servers.values():
        server.mapping()
    return {key: field.plain() for key, field in found.mapping().items()}


def parse_resume(found: Field) -> str:
    text = found.text(most=40)
    return text if is_prefix(text) else found.fail("expected the id of an earlier gate")


def seconds(field: Field, least: int) -> int:
    """A duration such as `30m`, or a number of seconds."""
    if isinstance(field.value, str):
        try:
            spoken = parse_duration(field.text(most=40))
        except Usage as wrong:
            field.fail(wrong.message)
        field = Field(spoken, field.source, field.path, field.line)
    return field.integer(least, 10**7)


def plain_held(held: Conversation | None) -> dict[str, object] | None:
    """What stands in a record, cut to what is read back from one."""
    if held is None:
        return None
    said = {name: getattr(held, name) for name in names_of(held)}
    said |= {name: said[name][:MOST_WORDS] for name in ("summary", "reason", "message")}
    shown = {name: value for name, value in said.items() if value not in ("", None)}
    if held.confirmed:
        del shown["confirmed"]
    return shown


def parse_held(item: Field, endings: Sequence[str]) -> Conversation:
    """The field `session` of an event that ended a conversation in one of `endings`."""
    status, source, confirmed = item.get("status"), item.get("source"), item.get("confirmed")
    outcome, value = item.need("outcome").one_of(endings), item.get("value")
    return Conversation(
        outcome=outcome,
        seconds=item.need("seconds").integer(0, 10**9),
        status=parse_status(status) if status else "",
        summary=text_or_empty(item, "summary", MOST_WORDS),
        reason=text_or_empty(item, "reason", MOST_WORDS),
        message=text_or_empty(item, "message", MOST_WORDS),
        source=source.one_of(SOURCES) if source else "",
        confirmed=confirmed.boolean() if confirmed else outcome != PROPOSED,
        transcript=text_or_empty(item, "transcript", MOST_TRANSCRIPT),
        agent=text_or_empty(item, "agent"),
        value=value.plain() if value else None,
        content=text_or_empty(item, "content", 128),
    )


def parse_status(found: Field) -> str:
    text = found.text(most=MOST_STATUS)
    return text if re.fullmatch(STATUS, text) else found.fail("expected a word such as DONE or NEEDS_REVIEW")


def kept(transcript: str) -> str:
    """A transcript (already redacted) as an event may hold it: what acts made visible, the end of it kept."""
    from ..text import neutral

    text = neutral(transcript).strip("\n")
    data = text.encode("utf-8", "replace")
    if len(data) <= MOST_TRANSCRIPT:
        return data.decode()
    mark = "[… the beginning is left out]\n"
    room = MOST_TRANSCRIPT - len(mark.encode())
    return mark + data[-room:].decode("utf-8", "ignore")


@dataclass(frozen=True)
class SessionRef:
    """A conversation of one agent's program. `directory` is where it runs, `transcript` the file, where those are known."""

    agent: str
    id: str
    directory: str = ""
    transcript: str = ""


@dataclass(frozen=True)
class SavedSession:
    """A conversation that can be taken up elsewhere: small files by relative name, clean enough to leave the machine.

    `place` is the folder that the agent's program kept it in: the conversation may speak of files by that path.
    `left_out` says what is missing and why.
    """

    agent: str
    id: str
    directory: str = ""
    place: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))
