"""Acts: an agent asks. Its question, its attachments and its partial work become commits; then, in one transaction, a gate.

Of a file that is attached only what was named is read: no link that leads away, no folder, pipe or device.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from .. import model
from .. import text as times
from ..context import Desk
from ..context.machine import host_name
from ..context.targets import may_publish_work, remote_of
from ..document import dataclass, replace
from ..errors import GateError, LostRace, NotAllowed, Usage
from ..exchange.syncing import Published, publish
from ..gates.recording import act, check_names, tell_people
from ..gates.work import FOLLOWED, on_its_branch, tie_commits
from ..model import ON_TIMEOUT, gate_id, is_id, no_word
from ..model.gate import Asker, Gate, Opened, Question, SavedSession, Session, Talk, Work
from ..policy import load_book
from ..policy.addressees import check_addressees
from ..questions.drafts import Draft, check_context
from ..questions.file import ASKED, MOST_BYTES, check_name
from ..questions.types import type_of
from ..record import events
from ..store.git.refs import OPEN, SESSIONS, WORK
from ..store.records import NOBODY, Signature
from ..store.remote import RefMove
from ..text import one_line
from ..text.digests import sha256
from .askers import (
    RUN,
    STEP,
    agent_name,
    readable,
    remember_asker,
    requester,
    session_of_draft,
    terms_of_step,
)

if TYPE_CHECKING:
    from ..store.work.snapshot import Snapshot


KEYS = "refs/gitgate/+keys/"  # `+` is in no remote's folder there
TRIES = 5
NAMES = 30  # a name is no word with two in three nonces; whoever has none left takes the last


@dataclass(frozen=True)
class Asked:
    """A gate that now waits. `new` is False when the same key already had one."""

    gate: Gate
    published: Published
    new: bool = True
    changed: int = 0
    untracked: int = 0
    saved: SavedSession | None = None
    session: str | None = None
    stood: str | None = None  # the branch that its directory is on, which need not be the work's


@dataclass(frozen=True)
class AskWishes:
    """Manner of asking, apart from the question."""

    work: bool = True
    untracked: bool = True
    include: tuple[str, ...] = ()
    push: bool | None = None
    wait: bool = False
    apart: tuple[str, ...] = ()
    """Untracked files that are the request itself, and not work."""


def ask(
    desk: Desk, draft: Draft, wishes: AskWishes = AskWishes(), attachments: Mapping[str, bytes] | None = None
) -> Asked:
    """Open a gate. Nothing is written unless all of it can be."""
    draft = on_terms_of_step(desk, draft)
    check_draft(desk, draft)
    check_addressees(desk, draft.to, draft.quorum, again="leave --to out for anybody, or say --to")
    if any(question.talk is not None for question in draft.questions):
        draft = settle_draft(desk, draft)
    check_enclosed(draft, attachments or {})
    for _ in range(TRIES):
        existing = held_by_key(desk, draft.key, draft.key_for)
        if isinstance(existing, Gate):
            return Asked(existing, Published(existing, reason="it was already there"), new=False)
        asked = compose(desk, draft, wishes, attachments or {})
        try:
            desk.refs.update(moves(asked, draft.key, existing))
        except LostRace:
            if draft.key is None:
                raise
            continue  # another process asked with the same key: what it opened is now ours too
        remember_asker(desk, asked.gate, asked.saved, asked.stood)
        tell_people(desk)
        published = publish(desk, asked.gate, push=wishes.push, work=may_publish_work(desk))
        return replace(asked, gate=published.gate, published=published)
    raise LostRace(f"the key {draft.key!r} is being used by several processes at once", hint="ask again")


def on_terms_of_step(desk: Desk, draft: Draft) -> Draft:
    """Apply the terms of a flow's step to a question that the step's agent asks by itself, so that it is asked as the
    flow would ask it.
    """
    said = terms_of_step(desk.settings.env)
    if said.get("human") is False:
        raise NotAllowed(
            f"the flow {one_line(str(said.get('flow', '')), 80)!r} asks nobody in this step: it decides itself what its agent needs",
            hint='end with what you need as your last words: {"status": "NEEDS_HUMAN", "reason": "…"}',
        )
    flow = said.get("flow")
    if isinstance(flow, str) and flow:
        draft = replace(draft, config={"flow": flow, **(draft.config or {})})
    return on_terms(desk, draft, said) if said else draft


def on_terms(desk: Desk, draft: Draft, said: Mapping[str, Any]) -> Draft:
    """The draft, and what a flow says of its questions where it says nothing itself."""
    length, how, names = said.get("timeout"), said.get("on_timeout"), said.get("notify")
    agent = said.get("agent")
    timeout = draft.timeout or (length if isinstance(length, int) and length > 0 else None)
    at_deadline = draft.on_timeout
    if at_deadline is None and how in ON_TIMEOUT and (timeout or timeout_of(desk, draft)):
        # A question that declares no default has none: nobody is taken to have said anything.
        without = any(question.default is None for question in draft.questions)
        at_deadline = "stuck" if how == "default" and without else how
    return replace(
        draft,
        timeout=timeout,
        on_timeout=at_deadline,
        notify=draft.notify or (tuple(map(str, names)) if isinstance(names, list) else ()),
        agent=draft.agent or (agent if isinstance(agent, str) and agent else None),
    )


def check_draft(desk: Desk, draft: Draft) -> None:
    """Refuse a draft that asks for something impossible, before anything is written."""
    if draft.timeout is not None and draft.timeout <= 0:
        raise Usage("a deadline has to be in the future", hint="--timeout 2h")
    if draft.quorum < 1:
        raise Usage("somebody has to answer", hint="--quorum 1")
    if not all(who.strip("@ ") for who in draft.to):
        raise Usage(
            "--to needs somebody's name, address or @login", hint="--to @ada, or leave it out for anybody"
        )
    check_key(draft)
    if not desk.settings.env.get(RUN) and "run" not in (draft.config or {}):
        check_names(desk, draft.notify)  # a run goes on where other names are known, and silences nobody
    how = draft.on_timeout or desk.settings.text("onTimeout")
    has_deadline = timeout_of(desk, draft) is not None
    if draft.on_timeout and not has_deadline:
        raise Usage(
            "--on-timeout says what happens at a deadline, and there is none", hint="add --timeout 2h"
        )
    if how != "default" or not has_deadline:
        if any(question.default is not None for question in draft.questions):
            raise Usage(
                "a default is the answer that counts when nobody gave one in time; no such time is set here",
                hint="add --on-timeout default --timeout 2h, or leave --default out",
            )
        return
    without = [q.key for q in draft.questions if q.default is None]
    if without:
        raise Usage(
            "--on-timeout default needs a default"
            + (f" for each question: {', '.join(without)}" if len(draft.questions) > 1 else ""),
            hint="add --default VALUE",
        )
    if any(type_of(q).approves for q in draft.questions):
        check_default_approval(desk)


def check_default_approval(desk: Desk) -> None:
    from ..policy.permit import approvals_may_default

    if not approvals_may_default(desk):
        raise NotAllowed(
            "an approval is not given by default: nobody would have said yes",
            hint="a person may allow it by `defaults: true` in the policy, or in a file of this machine: git config gitgate.policyFile /PATH",
        )


def check_key(draft: Draft) -> None:
    if draft.key is not None and not draft.key.strip():
        raise Usage("--key needs a word", hint="--key auth, or leave it out")
    if draft.key_for is not None and draft.key is None:
        raise Usage("--key-for is about a key, and there is none", hint="--key K --key-for 7d")


def timeout_of(desk: Desk, draft: Draft) -> int | None:
    return draft.timeout or desk.settings.seconds("timeout") or None


def check_enclosed(draft: Draft, attachments: Mapping[str, bytes]) -> None:
    """Refuse schemas and attachments that are broken: they are read only later, so they are checked now."""
    for question in draft.questions:
        if question.schema is not None:
            from ..questions.forms import check_schema, refuse_misspelt

            check_schema(dict(question.schema), f"the schema of {question.key}")
            refuse_misspelt(question.schema, f"the schema of {question.key}")
    if attachments:
        from ..questions.file import MOST_TOTAL, check_names

        check_names(attachments, "--attach")
        total = sum(map(len, attachments.values()))
        if total > MOST_TOTAL:
            raise Usage(f"--attach: expected at most {MOST_TOTAL:,} bytes together; found {total:,}")


def compose(desk: Desk, draft: Draft, wishes: AskWishes, attachments: Mapping[str, bytes]) -> Asked:
    tie_commits(desk)
    desk.records.objects.begin()
    found: list[SavedSession | None] = []

    def look_for_session() -> None:
        with contextlib.suppress(GateError, OSError):  # raised below again, where it is not about the work
            found.append(session_of_draft(desk, draft))

    taken, changed, untracked = snapshot(desk, wishes, look_for_session)
    work = on_its_branch(desk, taken)
    saved = found[0] if found else session_of_draft(desk, draft)
    tree, session = "", None
    if saved is not None:
        from .sessions import tree_of

        tree = tree_of(desk, saved)
    wanted = opened_by(desk, draft, work, saved, tree, wishes, tuple(attachments))
    opened = with_nonce(desk, as_policy_wants(desk, wanted))
    # A job's commit is its robot's, whoever it asks for.
    who = desk.settings.identity() or opened.asked.by or NOBODY
    gate = desk.records.write_opened(opened, attachments, Signature(who, desk.at))
    if saved is not None:
        from .sessions import write

        session = write(desk, gate.id, saved.agent, tree)
    return Asked(gate, Published(gate), True, changed, untracked, saved, session, taken.branch)


def as_policy_wants(desk: Desk, wanted: Opened) -> Opened:
    """Tighten the question as the policy demands; the code that judges people is loaded only where there is a policy.
    Without a policy, a question that names people may be answered by them alone.
    """
    if not load_book(desk).policies:
        return replace(wanted, to_holds=bool(wanted.to))
    from ..policy.permit import tightened

    return tightened(desk, wanted)


def opened_by(
    desk: Desk,
    draft: Draft,
    work: Work,
    saved: SavedSession | None,
    tree: str,
    wishes: AskWishes,
    attachments: tuple[str, ...],
) -> Opened:
    session_id = saved.id if saved else ""
    salt = desk.entropy(8)
    timeout = timeout_of(desk, draft)
    whose = requester(desk)
    return Opened(
        title=draft.title or title_of(draft.questions[0].prompt),
        questions=draft.questions,
        asked=Asker(
            agent=agent_name(desk, draft, session_id),
            at=desk.now,
            by=whose.by,
            logins=whose.logins,
            host=host_name(),
            directory=readable(str(desk.repo.place)),
        ),
        work=replace(work, shared=is_shared(desk, work.branch)),
        nonce=desk.entropy(12),
        session=session_named(desk, saved, tree, salt) if saved else None,
        delivery="wait" if wishes.wait else "resume" if session_id else "none",
        priority=draft.priority or desk.settings.text("priority"),
        deadline=times.format_time(desk.clock() + timeout) if timeout else None,
        timeout=timeout,
        on_timeout=draft.on_timeout or desk.settings.text("onTimeout"),
        follows=desk.settings.env.get(FOLLOWED) or None,
        attachments=attachments,
        config=configured(desk, draft),
        **as_said(draft),
    )


# What a draft leaves open is decided above.
DECIDED = ("title", "priority", "timeout", "on_timeout")


def as_said(draft: Draft) -> dict[str, Any]:
    """The fields of the gate that are taken over as they were said."""
    return {row.name: getattr(draft, row.name) for row in ASKED if row.recorded and row.name not in DECIDED}


def is_shared(desk: Desk, branch: str | None) -> bool:
    """Return whether the remote had the branch, as far as is known here. If it is missing later, it was deleted, not
    never pushed.
    """
    remote = remote_of(desk) if branch else None
    return remote is not None and desk.refs.get(f"refs/remotes/{remote}/{branch}") is not None


def configured(desk: Desk, draft: Draft) -> dict[str, object]:
    """Return the configuration that the question carries. Only the job's environment says which job asks and which
    pull request shows the question: a draft could name any, or one that does not exist.
    """
    env = desk.settings.env
    runs = {"GITHUB_ACTIONS": "GITHUB_RUN_ID", "GITLAB_CI": "CI_PIPELINE_ID"}
    run = next((env.get(number, "") for job, number in runs.items() if env.get(job) == "true"), "")
    job = {
        "pull_request": desk.settings.pull_request,
        "job_run": int(run) if run.isdecimal() and run.isascii() else None,
    }
    own = {name: value for name, value in (draft.config or {}).items() if name not in job}
    named = {"run": env.get(RUN, ""), "step": env.get(STEP, "")} if env.get(RUN) else {}
    own = {**{name: value for name, value in named.items() if value}, **own}
    return {**own, **{name: value for name, value in job.items() if value}}


def with_nonce(desk: Desk, opened: Opened) -> Opened:
    """Add a nonce that gives the gate an id which is no word where people reply: at first one id in three is one."""
    for _ in range(NAMES):
        if no_word(gate_id(events.dump_event(opened))):
            break
        opened = replace(opened, nonce=desk.entropy(12))
    return opened


def moves(asked: Asked, key: str | None, key_before: str | None) -> list[RefMove]:
    """The gate, its work, its session and its key: all of them or none."""
    gate = asked.gate
    listed = [RefMove(OPEN + gate.id, gate.tip, None)]
    if gate.opened.work.commit:
        listed.append(RefMove(WORK + gate.id, gate.opened.work.commit, None))
    if asked.session is not None:
        listed.append(RefMove(SESSIONS + gate.id, asked.session, None))
    if key is not None:
        listed.append(RefMove(key_ref(key), gate.tip, key_before))
    return listed


def key_ref(key: str) -> str:
    return KEYS + sha256(key.encode()).hexdigest()[:20]


def held_by_key(desk: Desk, key: str | None, key_for: int | None = None) -> Gate | str | None:
    """The gate that this key stands for; or where the key's ref points when that gate is over; or None.

    Longer than its gate is open a key stands for it where whoever asked, or asks now, says for how long.
    """
    if key is None:
        return None
    opened = desk.refs.get(key_ref(key))
    if opened is None:
        return None
    said = model.parse_trailers(desk.records.commit(opened).message) or {}
    name = said.get("Gate", "")
    tip = desk.refs.get(OPEN + name) if name else None
    loaded = act(desk, desk.records.load(name, tip)) if tip else archived_gate(desk, name)
    if loaded is None:
        return opened
    if not loaded.closed:
        return loaded
    longest = max(key_for or 0, loaded.opened.key_for or 0)
    return loaded if times.parse_time(loaded.opened.asked.at) + longest > desk.clock() else opened


def archived_gate(desk: Desk, name: str) -> Gate | None:
    from ..gates.history import load_archived

    return load_archived(desk, name) if is_id(name) else None


@contextlib.contextmanager
def own_files(desk: Desk) -> Iterator[None]:
    """The tree's own files, where others stand for some of them while a resumed agent works (`policy.project`)."""
    if not desk.repo.standing_lock.exists():
        yield
        return
    from ..store.work.pinned import suspended

    with suspended(desk.repo):
        yield


def take_work(desk: Desk, wishes: AskWishes, meanwhile: Callable[[], object] | None = None) -> Snapshot:
    from ..store.work.snapshot import take

    author = desk.settings.identity() or NOBODY
    name, _, email = author.rpartition(" <")
    return take(
        desk.repo,
        at=desk.at,
        untracked=wishes.untracked,
        include=wishes.include,
        apart=wishes.apart,
        signals=desk.settings.text("signals"),
        author=(name, email.removesuffix(">")),
        most_bytes=desk.settings.number("maxFileSize"),
        meanwhile=meanwhile,
    )


def snapshot(desk: Desk, wishes: AskWishes, meanwhile: Callable[[], object]) -> tuple[Work, int, int]:
    """The partial work as commits, and how many files it changes and adds. `meanwhile` is done while git looks, if it has to."""
    if desk.repo.top is None:
        head = desk.refs.get("HEAD")
        return Work(head, head, head), 0, 0
    if not wishes.work:
        head = desk.refs.get("HEAD")
        from ..store.work.commits import head_branch

        # A document holds no bytes that are no UTF-8.
        branch = (head_branch(desk.repo.git) or "").encode("utf-8", "surrogateescape")
        return Work(head, head, head, branch.decode("utf-8", "replace") or None), 0, 0
    with own_files(desk):
        taken = take_work(desk, wishes, meanwhile)
    work = Work(
        base=taken.base or None,
        staged=taken.staged or None,
        commit=taken.work or None,
        branch=taken.branch,
        dirty=taken.dirty,
        files=taken.files,
        insertions=taken.insertions,
        deletions=taken.deletions,
        left_out=tuple((item.path, item.reason) for item in taken.left_out),
        intent_to_add=taken.intent_to_add,
        operation=taken.operation,
    )
    return work, taken.changed, taken.untracked


def session_named(desk: Desk, saved: SavedSession, tree: str, salt: str) -> Session:
    from ..context.session_proof import content_of, first_key
    from .sessions import session_digest

    digest, content = session_digest(salt, saved.id), content_of(salt, tree)
    return Session(saved.agent, digest, salt, bool(saved.files), content, first_key(desk, salt))


def title_of(prompt: str) -> str:
    line = prompt.strip().splitlines()[0].strip()
    return line if len(line) <= 72 else line[:71].rstrip() + "…"


def settle_draft(desk: Desk, draft: Draft) -> Draft:
    """Return the draft with the whole id of each earlier gate whose conversation is to go on."""
    return replace(draft, questions=tuple(settled_question(desk, question) for question in draft.questions))


def settled_question(desk: Desk, question: Question) -> Question:
    if question.talk is None:
        return question
    check_context(question)
    check_folder(desk, question.talk)
    check_servers(desk, question.talk)
    if not question.talk.resume:
        return question
    from . import find_gate

    earlier = find_gate(desk, question.talk.resume).gate.id
    return replace(question, talk=replace(question.talk, resume=earlier))


def check_servers(desk: Desk, talk: Talk) -> None:
    """Refuse an MCP configuration that contains a secret. It is hard to remove from Git; tools get their keys from the
    machine of the session.
    """
    if talk.mcp is None:
        return
    import json

    from ..text.secrets import redact, secret_values

    text = json.dumps(talk.mcp, ensure_ascii=False)
    if redact(text, secret_values(desk.settings.env)) != text:
        raise Usage(
            "the MCP configuration holds what looks like a secret, and it would be recorded in Git",
            hint='name a variable of the machine instead: "env": {"API_KEY": "${API_KEY}"}',
        )


def check_folder(desk: Desk, talk: Talk) -> None:
    if talk.cwd and desk.repo.top is not None and not (desk.repo.top / talk.cwd).is_dir():
        raise Usage(
            f"the session is to begin in {talk.cwd}, and there is no such folder in {desk.repo.top}",
            hint="name a folder from the top of the working tree: --cwd services/api",
        )


def read_attachment(path: Path, root: Path) -> tuple[str, bytes]:
    """The file's path below `root`, with slashes, and its bytes. A relative `path` begins at `root`."""
    shown = f'"{one_line(os.fspath(path), 120)}"'
    outside = Usage(
        f"{shown}: expected a file below {one_line(os.fspath(root), 120)}; it leads out of it",
        hint=f"cp {quote(os.fspath(path))} . && git gate ask … --attach {quote(path.name)}",
    )
    # Not resolved: the name is the one that the person gave, and `..` is refused rather than followed.
    whole = root / path
    if not whole.is_relative_to(root):
        if not whole.exists():  # then it cannot be copied here either
            raise Usage(f"{shown}: expected a file; no such file or directory")
        raise outside
    name = check_name(whole.relative_to(root).as_posix(), shown, field="attachment")
    try:
        base, real = root.resolve(strict=True), whole.resolve(strict=True)
    except (OSError, RuntimeError) as wrong:  # RuntimeError: a link that leads to itself, before Python 3.13
        raise Usage(f"{shown}: expected a file; {why_unreadable(wrong)}") from wrong
    if not real.is_relative_to(base) or real == base:
        raise outside
    check_name(real.relative_to(base).as_posix(), shown, field="attachment")  # a link to .git/config, say
    return name, read_bytes_of(real, shown)


def read_bytes_of(path: Path, shown: str) -> bytes:
    """Opened without following a link or waiting for a pipe, judged by what was opened, then read."""
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        kind = os.lstat(path).st_mode
        if not stat.S_ISREG(kind):  # opening a device can have effects of its own
            raise Usage(f"{shown}: expected a regular file; found {mode_words(kind)}")
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except OSError as wrong:
        raise Usage(f"{shown}: expected a file that can be read; {why_unreadable(wrong)}") from wrong
    with os.fdopen(descriptor, "rb") as file:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            raise Usage(f"{shown}: expected a regular file; found {mode_words(opened.st_mode)}")
        try:
            content = file.read(MOST_BYTES + 1)
        except OSError as wrong:
            raise Usage(f"{shown}: expected a file that can be read; {why_unreadable(wrong)}") from wrong
    if len(content) > MOST_BYTES:
        size = max(opened.st_size, len(content))
        raise Usage(
            f"{shown}: expected at most {MOST_BYTES:,} bytes; found {size:,}",
            hint="attach the part that matters, or commit the file and name it in the question",
        )
    return content


def mode_words(mode: int) -> str:
    """Return the kind of a file by its mode, in words."""
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a symbolic link"),
    )
    return next((words for test, words in kinds if test(mode)), "a device")


def why_unreadable(wrong: Exception) -> str:
    """The system's own words, without its number."""
    return (
        (wrong.strerror or "it cannot be read").lower()
        if isinstance(wrong, OSError)
        else "the link leads to itself"
    )
