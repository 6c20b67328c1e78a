"""Gates: the agents that this machine knows how to start again, whether one can be started here, and who is told when it cannot."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ..context import Desk
from ..document import dataclass, replace
from ..errors import Conflict, Failure, GateError, IllegalEvent, Usage
from ..model import ANSWERED, EXPIRED
from ..model.gate import Asker, Event, Gate, Remark, SessionRef
from ..store import read_local
from ..store.git import Repository, machine_values
from ..store.git.refs import RUNS, SESSIONS

if TYPE_CHECKING:
    from ..agents.agent import Agent, AgentSettings
    from ..store.git.refs import Update

# The agents that this machine knows how to start again, and whose conversation a question belongs to.
#
# How a program is started grants power, so it comes from the machine's own git configuration, else from
# the policy on the protected branch: never from a gate, a session, or a file that another branch carries,
# not even where the configuration includes one. A name may be that of a file there, which says what the
# program is told about itself.


SECTION = "gitgate.agent."
STDIN = ("answer", "prompt", "none")
FOLDERS = (".claude/agents", ".gitgate/agents")
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}"
# What an agent's file keeps from it, and the flag that says so: Claude Code's, which alone has them.
KEPT_FROM = {"tools": "--tools", "disallowedTools": "--disallowedTools"}


def adapter(name: str) -> Agent:
    """The adapter for an agent of that name: one of its own, or the one for any program."""
    from .. import agents

    return agents.adapter(name)


def starts_by_itself(name: str) -> bool:
    """Return whether the start of the agent `name` is built in and needs no setting."""
    return adapter(name).starts


def configured(desk: Desk, name: str) -> dict[str, list[str]]:
    """Return this machine's settings of the agent `name`, or its policy's start, by variable in lower case."""
    if not name or any(c in name for c in "\n\0"):
        return {}

    prefix = f"{SECTION}{name}."
    values = machine_values(desk.repo, r"^gitgate\.agent\.", nearest=True)
    said = {key.removeprefix(prefix): found for key, found in values.items() if key.startswith(prefix)}
    return said if "resume" in said or "start" in said else {**ruled(desk, name), **said}


def ruled(desk: Desk, name: str) -> dict[str, list[str]]:
    """Return the start that the protected branch's policy gives an agent unless this machine sets one."""
    import json

    from ..policy import load_book

    if starts_by_itself(name) or name == "command":
        return {}
    found = next((p.commands[name] for p in load_book(desk).policies if name in p.commands), {})
    return {kind: [json.dumps(list(words))] for kind, words in found.items()}


def agent_settings(desk: Desk, name: str) -> AgentSettings:
    """Return the settings that start the agent `name` on this machine.

    A list is several values of one variable, or one value that is a JSON list or a line in a shell's quoting.
    """
    from ..agents.agent import AgentSettings

    said = configured(desk, name)
    stdin = (said.get("stdin") or ["answer"])[-1]
    if stdin not in STDIN:
        raise Usage(
            f"{SECTION}{name}.stdin is {stdin!r}; expected one of {', '.join(STDIN)}",
            hint=f"git config {SECTION}{name}.stdin answer",
        )
    return AgentSettings(
        program=setting_parts(name, "program", said),
        arguments=setting_parts(name, "arguments", said),
        start_template=setting_parts(name, "start", said),
        resume_template=setting_parts(name, "resume", said),
        join_template=setting_parts(name, "join", said),
        stdin=stdin,
        project_settings=switched_on(said, "projectsettings"),
        project_servers=switched_on(said, "projectservers"),
        timeout=float(desk.settings.seconds("agentTimeout") or 7200),
    )


def settings_for_start(desk: Desk, name: str) -> AgentSettings:
    """Return settings for a start. Project files load if this machine says so, else if a policy allows and none forbids."""
    from ..policy import load_book

    settings, said = agent_settings(desk, name), configured(desk, name)
    policies = load_book(desk).policies

    def allowed(kind: str) -> bool:
        wishes = [policy.loads.get(name, {}).get(kind) for policy in policies]
        return True in wishes and False not in wishes

    return replace(
        settings,
        project_settings=settings.project_settings
        or ("projectsettings" not in said and allowed("project_settings")),
        project_servers=settings.project_servers
        or ("projectservers" not in said and allowed("project_servers")),
    )


@dataclass(frozen=True)
class AgentStart:
    """Start of an agent by name: the program, and its settings with its instructions.

    `before`: the instructions for a program that takes none apart; they precede the first prompt of a conversation.
    """

    name: str
    program: str
    settings: AgentSettings
    before: str = ""


def check_name(name: object) -> None:
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise Usage(
            f"{name!r} is not an agent's name: letters, digits, dots, dashes", hint='gitgate.run("coder")'
        )


def how_started(desk: Desk, name: str) -> AgentStart:
    """Find an agent's start: in `gitgate.agent.NAME.start`, in its file on the protected branch, or built in."""
    check_name(name)
    said = configured(desk, name)
    if "start" in said or "resume" in said:
        return AgentStart(name, name, settings_for_start(desk, name))
    found = described(desk, name)
    if found is not None:
        return found
    if starts_by_itself(name) and name != "flow":
        return AgentStart(name, name, settings_for_start(desk, name))
    raise Usage(
        f"no agent is called {name!r} on this machine, nor on the protected branch",
        hint=f"git config gitgate.agent.{name}.start '…'   or commit .claude/agents/{name}.md there",
    )


def described(desk: Desk, name: str) -> AgentStart | None:
    """The agent that a file of its name describes: what stands after its head is what the program is told about itself."""
    from ..policy import protected_refs
    from ..store.git.protected import read_protected

    for folder in FOLDERS:
        found = read_protected(desk.refs, desk.records.objects, f"{folder}/{name}.md", protected_refs(desk))
        if found is not None:
            return read_description(desk, name, found.data.decode("utf-8", "replace"), found.source)
    return None


def read_description(desk: Desk, name: str, text: str, source: str) -> AgentStart:
    head, text = parted_head(text)
    program = head.get("program", "claude")
    if not starts_by_itself(program) or program == "flow":
        raise Usage(
            f"{source}: program: expected one that starts by itself, as claude or codex; found {program!r}"
        )
    settings, text = settings_for_start(desk, program), text.strip()
    more = ["--model", head["model"]] if head.get("model", "inherit") != "inherit" else []
    # What the file keeps from it stays kept from it, whatever the machine's own arguments allow.
    kept = [(flag, head[field]) for field, flag in KEPT_FROM.items() if head.get(field)]
    if program == "claude":
        more = [*(["--append-system-prompt", text] if text else []), *more]
        more += [word for pair in kept for word in pair]
    elif kept:
        fields = " and ".join(field for field in KEPT_FROM if head.get(field))
        raise Usage(
            f"{source}: {program} takes no {fields} from a file; with them left out it may use all that it has",
            hint=f"leave {fields} out there; what it may do: git config {SECTION}{program}.arguments '…'",
        )
    settings = replace(settings, arguments=(*settings.arguments, *more))
    return AgentStart(name, program, settings, "" if program == "claude" else text)


def parted_head(text: str) -> tuple[dict[str, str], str]:
    """The fields between the dashes that a description begins with, a list as words with commas; and what stands below.

    People write prose there that no reader of YAML takes, so lines are read, and only those of fields and lists.
    """
    text = text.replace("\r\n", "\n")
    if not text.startswith("---\n"):
        return {}, text
    top, _, below = text[4:].partition("\n---")
    head: dict[str, str] = {}
    key = ""
    for line in top.splitlines():
        if item := re.match(r"\s*-\s+(.+)", line):
            head[key] = f"{head[key]},{bare(item[1])}" if head.get(key) else bare(item[1])
        elif field := re.match(r"([A-Za-z][\w-]*)\s*:\s*(.*)", line):
            key, value = field[1], field[2].strip()
            parts = value[1:-1].split(",") if value[:1] == "[" and value[-1:] == "]" else [value]
            head[key] = ",".join(bare(part) for part in parts)
    return head, below


def bare(word: str) -> str:
    return word.strip().strip("\"'")


def settings_in_talk(desk: Desk, gate: Gate, program: str) -> AgentSettings:
    """Return the settings to reopen a gate's conversation; a flow's agent stays as its file describes it."""
    name = gate.opened.asked.agent
    if gate.opened.config.get("run") and name != program and re.fullmatch(NAME, name):
        found = described(desk, name)
        if found is not None and found.program == program:
            return found.settings
    return settings_for_start(desk, program)


def setting_parts(name: str, variable: str, said: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    values = said.get(variable, ())
    if len(values) != 1:
        return tuple(values)
    parts = parted(values[0])
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise Usage(
            f"{SECTION}{name}.{variable} is not a list of words: {values[0]!r}",
            hint=f"""git config {SECTION}{name}.{variable} '["program", "--flag", "{{prompt_file}}"]'""",
        )
    return tuple(parts)


def parted(line: str) -> object:
    """A JSON list, or a line in a shell's quoting, which may begin with a placeholder; an object is neither."""
    import json
    import shlex

    try:
        return json.loads(line) if line.lstrip()[:1] in ("[", "{") else shlex.split(line)
    except RecursionError:
        return None
    except ValueError:
        pass
    try:
        return None if line.lstrip().startswith("[") else shlex.split(line)
    except ValueError:
        return None


def switched_on(said: Mapping[str, Sequence[str]], variable: str) -> bool:
    return (said.get(variable) or ["false"])[-1].lower() in ("true", "1", "yes", "on")


def cannot_start(desk: Desk, name: str) -> str:
    """Return why this machine cannot start the agent `name`; empty when it can, as far as is known beforehand."""
    import shutil

    program = program_of(desk, name)
    if program is None:
        return f"no command is set that starts {name!r}: git config {SECTION}{name}.resume '…'"
    if "{" in program or ("/" in program and not program.startswith("/")):
        return ""  # Which program it is turns out only where the agent is started.
    found = shutil.which(program, path=desk.settings.env.get("PATH"))
    return "" if found else f"{program} is not on PATH"


def program_of(desk: Desk, name: str) -> str | None:
    """Return the program that is run for the agent `name`; None where nothing defines it."""
    settings, known = agent_settings(desk, name), adapter(name)
    template = settings.resume_template or settings.start_template
    if known.starts and not (known.templated and template):
        return settings.program[0] if settings.program else known.executable or name
    return template[0] if template else None


def cannot_join(desk: Desk, name: str) -> str:
    """Return the reason why a person cannot talk to the agent `name` on this machine; empty when they can."""
    if starts_by_itself(name):
        return cannot_start(desk, name)
    if agent_settings(desk, name).join_template:
        return ""
    return f"no command is set that opens a conversation with {name!r}: git config {SECTION}{name}.join '…'"


def current_session(desk: Desk, agent: str | None, session: str | None) -> SessionRef | None:
    """Return the conversation to which a question belongs: as it was given, else as the environment tells.

    One of a program that nothing here can start counts only if the asker bears its name: nobody would resume it.
    """
    from ..agents import detect
    from ..agents.agent import NONE, need_session_id

    env = desk.settings.env
    known = agent or env.get("GITGATE_AGENT", "")
    found = detect(env)
    if found is not None and found.agent == "command" and known:
        found = SessionRef(known, found.id, found.directory)
    named = known if known and is_agent(desk, known) else ""
    if session:
        if found is not None and found.id == session and not named:
            return found
        program = named or owner(desk, known) or "claude"
        return SessionRef(program, need_session_id(session), str(desk.repo.place))
    if found is not None:
        return found if found.agent in (known, "command") or is_agent(desk, found.agent) else None
    if named and not starts_by_itself(named):
        # A program that is simply started again has no conversation of its own to be told by.
        return SessionRef(named, f"{NONE}{desk.entropy(8)}", str(desk.repo.place))
    return None


def owner(desk: Desk, name: str) -> str:
    """The program that a conversation belongs to: one that we know by that name, else the one whose shell this is."""
    from ..agents import AGENTS, program_in

    if name in AGENTS and name != "command":
        return name
    program = program_in(desk.settings.env)
    return program.name if program else ""


def untold_start(desk: Desk, agent: str | None, session: str | None) -> tuple[str, str]:
    """With a session that was given: whose it was taken for, and the name whose start is not set here; empty where it is."""
    if not session:
        return "", ""
    taken = current_session(desk, agent, session)
    name = agent or desk.settings.env.get("GITGATE_AGENT", "")
    if taken is None or is_agent(desk, name):
        return "", ""
    if not is_agent(desk, taken.agent):
        return taken.agent, taken.agent
    found = current_session(desk, agent, None)
    told = (found is not None and found.id == session) or owner(desk, name) == taken.agent
    return ("", "") if told or not name else (taken.agent, name)


def is_agent(desk: Desk, name: str) -> bool:
    """Return whether `name` is a program that can be started again, and not only an agent's given name."""
    if starts_by_itself(name):
        return True
    prefix = f"{SECTION}{name}."
    return any(key.startswith(prefix) for key in desk.settings.git) or bool(ruled(desk, name))


# Whether the agent of an answered gate can be started in this repository, and who is told when it cannot.
#
# A shared repository says so to whoever pushes the answer, and writes it into the gate. That is a remark
# and no outcome: the gate stays answered, so that any other machine, one that has the session, may still
# claim it.


VIA = "runner"
BEGUN = "begun.json"
CLAIMS = "claims"
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt")
STARTS = "its agent is resumed here"
STAYS = "its agent is not resumed here: "
_HEARD = rf"gate: ([2-9a-z]+): (?:{re.escape(STARTS)}|{re.escape(STAYS)}(.*))"


class CannotStart(Failure):
    """Lasting reason against a start: this machine does not have the session, or does not know the agent."""

    code = "cannot_start"


def asker_place(asked: Asker) -> str:
    """Machine and directory, as the asker told them."""
    where = " in ".join(word for word in (asked.host, asked.directory) if word)
    return f" (on {where})" if where else ""


def stayed(gate: Gate, how: str) -> CannotStart:
    """Only where it was asked can this gate be resumed."""
    asked = gate.opened.asked
    return CannotStart(
        f"the session of gate {gate.id} is not {how}: it stayed where {asked.agent} asked{asker_place(asked)}",
        hint="resume it there, or share sessions from there: git config gitgate.session push",
    )


def kept_back(desk: Desk, gates: Iterable[Gate]) -> frozenset[str]:
    """The gates whose session stayed where they were asked, so that nobody elsewhere, and no job, can go on with it.

    The shared repository is asked about those that it is not known to have; whoever cannot ask it does not know, and names none.
    """
    from ..context.targets import remote_of
    from ..store.remote.fetch import ask_refs, have

    wanted = [SESSIONS + gate.id for gate in gates if gate.opened.session is not None and not gate.opened.run]
    remote = remote_of(desk) if wanted else None
    if remote is None:
        return frozenset()
    known = have(desk.repo, remote, wanted)
    unsure = [ref for ref in wanted if ref not in known]
    try:
        there = ask_refs(desk.repo, remote, unsure, timeout=desk.network_timeout)
    except GateError:
        return frozenset()
    return frozenset(ref.removeprefix(SESSIONS) for ref in unsure if ref not in there)


# runs of flows


def folder_of_run(desk: Desk, run: str) -> Path:
    """Return the folder that this machine alone keeps of a run: its claim, its agents' folders, its code."""
    return desk.repo.state_dir / "flows" / run


def note_begun(desk: Desk, run: str, path: str) -> None:
    """Note on this machine that the run began here, and from which file: a journal could name any."""
    import json

    from ..store import private_folder

    place = private_folder(folder_of_run(desk, run)) / BEGUN
    place.write_text(json.dumps({"path": path}), encoding="utf-8")


def is_protected(desk: Desk, code: str) -> bool:
    """Return whether the commit is on the protected branch. Elsewhere than it began, a run needs such code."""
    from ..policy import protected_refs
    from ..store.git.protected import protected_tip
    from ..store.work.commits import is_ancestor

    tip = protected_tip(desk.refs, desk.records.objects, protected_refs(desk))
    return tip is not None and is_ancestor(desk.repo.git, code, tip)


def began_here(desk: Desk, run: str) -> bool:
    return (folder_of_run(desk, run) / BEGUN).exists()


def what_runs_it(desk: Desk) -> dict[str, str]:
    """Return the versions that a flow's code also depends on: ours, Python's, and the file that names its packages."""
    from ..text.digests import sha256
    from ..version import VERSION

    found = {"version": VERSION, "python": sys.version.split()[0]}
    top = desk.repo.top
    lock = next((top / name for name in LOCKS if (top / name).is_file()), None) if top is not None else None
    if lock is not None:
        found["lock"] = f"{lock.name} {sha256(lock.read_bytes()).hexdigest()[:12]}"
    return found


def note_claim(desk: Desk, run: str, claim: str) -> None:
    """Note that this clone goes on with the run, for as long as this claim counts."""
    from ..store import private_folder

    with (private_folder(folder_of_run(desk, run)) / CLAIMS).open("a", encoding="utf-8") as out:
        out.write(f"{claim}\n")


def claims_here(desk: Desk, run: str) -> frozenset[str]:
    """The claims on a run that processes of this clone have made."""
    try:
        return frozenset(read_local(folder_of_run(desk, run) / CLAIMS).decode("utf-8").split())
    except FileNotFoundError:
        return frozenset()


# said to whoever pushes


def foretold(desk: Desk, gates: Iterable[Gate], updates: Sequence[Update]) -> list[str]:
    """A line for each gate of a push that is to be resumed: whether it will be, and if not, why."""
    wanted = [gate for gate in gates if gate.actionable and gate.opened.delivery == "resume"]
    if not wanted:
        return []
    refs = [needed_ref(gate) for gate in wanted]
    coming = {update.ref for update in updates if update.new}
    here = {*desk.refs.under(*refs), *coming}
    everybody = no_runner(desk)
    unknown: dict[str, str] = {}
    lines = []
    for gate in wanted:
        what = "run" if gate.opened.run else "session"
        why = everybody or ("" if needed_ref(gate) in here else f"its {what} is not here")
        why = why or no_agent(desk, gate, unknown)
        lines.append(f"gate: {gate.id}: {STAYS}{why}" if why else f"gate: {gate.id}: {STARTS}")
    return lines


def needed_ref(gate: Gate) -> str:
    """Return the ref that a resume needs: the asker's session, or the journal of the run that asks."""
    return RUNS + gate.opened.run if gate.opened.run else SESSIONS + gate.id


def no_runner(desk: Desk) -> str:
    """Return the reason why a push to this repository starts nothing at all; empty where there is none."""
    if not desk.settings.flag("resumeHere"):
        return "git gate init did not allow it"
    from ..store import may_keep

    folder = hooks_folder(desk.repo)
    if folder is not None and not os.access(folder / "post-receive", os.X_OK):
        return "it has no post-receive hook"
    return (
        ""
        if may_keep(desk.repo.state_dir)
        else "the account that pushes may not write into the repository's folder"
    )


def no_agent(desk: Desk, gate: Gate, known: dict[str, str]) -> str:
    """Return the reason why this machine cannot start the agent of a gate, looked up once for each agent."""
    if gate.opened.session is None:
        return "it was asked without a session"
    agent = gate.opened.program
    if agent not in known:
        try:
            known[agent] = cannot_start(desk, agent)
        except GateError as broken:
            known[agent] = broken.message
    return known[agent]


def said_of_push(heard: Iterable[str], gate: str) -> str | None:
    """Return a server's word on a pushed gate: empty if it resumes it, else why not; None if it said nothing."""
    for line in heard:
        found = re.fullmatch(_HEARD, line)
        if found and found[1] == gate:
            return (found[2] or "").strip()
    return None


# written into the gate


def note_inability(desk: Desk, gate: str, why: str) -> None:
    """Once for an answer, and only where all can see it: what one of many clones cannot do says nothing."""
    from ..context.machine import host_name
    from ..context.targets import remote_of
    from ..store.records import NOBODY
    from .recording import record, reload

    if remote_of(desk) is not None:
        return
    event = Remark(at=desk.now, text=f"not resumed on {host_name()}: {why}", via=VIA)

    def decide(current: Gate) -> tuple[str, Event]:
        if current.state != ANSWERED or noted(current):
            raise IllegalEvent(f"gate {gate} has moved on")
        return "commented", event

    try:
        record(desk, reload(desk, gate), decide, who=NOBODY)
    except IllegalEvent:
        return


def noted(gate: Gate) -> bool:
    """Return whether a runner has noted, since the answer that counts, that it cannot start the agent."""
    for entry in reversed(gate.history):
        if gate.answer is not None and entry.commit == gate.answer.commit:
            return False
        if isinstance(entry.event, Remark) and entry.event.via == VIA and entry.name == "commented":
            return True
    return False


def unbegun(gate: Gate) -> bool:
    """Something is to be told to an asker, and nobody has begun with it."""
    return gate.actionable and gate.state in (ANSWERED, EXPIRED)


NAMES = ("pre-receive", "post-receive")
MARK = "# git-gate hook: "
BEFORE = ".before-git-gate"
PACKAGE = Path(__file__).resolve().parents[1]
REINSTALL = "in a clone of git gate's repository: pipx install --force '.[forms]'"


def shim(name: str) -> str:
    """The text of a hook for this machine: where git-gate is installed is written into it, since a server's PATH is bare."""
    for folder in (PACKAGE / "shims", PACKAGE.parent / "hooks"):
        if (folder / name).is_file():
            text = (folder / name).read_text(encoding="utf-8")
            program, command = ourselves()
            return text.replace("@COMMAND@", command).replace("@PROGRAM@", program)
    raise Failure("the hook shims are not part of this installation", hint=REINSTALL)


def ourselves() -> tuple[str, str]:
    """The program that a hook starts, and the whole command. -P: no directory takes part in finding our own code."""
    return quote(sys.executable), f"{quote(sys.executable)} -P -m gitgate.cli.receive"


def needed_files() -> tuple[Path, ...]:
    """Return the files that every pusher has to be able to read."""
    return (Path(sys.executable), PACKAGE / "__init__.py")


def hooks_folder(repo: Repository) -> Path | None:
    """Return this repository's hooks folder; None where others share it or the working tree contains it."""
    # Our own git runs without hooks: the last value is ours.
    said = machine_values(repo, r"^core\.hookspath$").get("core.hookspath", [])[:-1]
    if not said or not said[-1]:
        return repo.common_dir / "hooks"
    folder = Path(os.path.normpath((repo.top or repo.git_dir) / said[-1]))
    return folder if folder.resolve().is_relative_to(repo.common_dir.resolve()) else None


def is_ours(place: Path) -> bool:
    try:
        return MARK in place.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return False


def state(folder: Path, name: str) -> str:
    """`missing`, `current`, `old`, or `foreign`: somebody else's hook."""
    place = folder / name
    if not os.path.lexists(place):
        return "missing"
    if not is_ours(place):
        return "foreign"
    current = place.read_text(encoding="utf-8", errors="replace") == shim(name) and os.access(place, os.X_OK)
    return "current" if current else "old"


def install(folder: Path, name: str) -> None:
    """Put the hook in place. One that is there goes on working: it is kept beside it, and runs first."""
    place, before = folder / name, folder / (name + BEFORE)
    folder.mkdir(parents=True, exist_ok=True)
    if state(folder, name) == "foreign":
        if os.path.lexists(before):
            raise Conflict(
                f"there are two foreign hooks: {place} and {before}",
                hint="remove the one that is not needed any more",
            )
        place.rename(before)
    new = folder / f".{name}.new"
    new.write_text(shim(name), encoding="utf-8")
    new.chmod(0o755)
    new.replace(place)


def remove(folder: Path, name: str) -> None:
    """Take the hook away, and put back what was there before."""
    place, before = folder / name, folder / (name + BEFORE)
    if is_ours(place):
        place.unlink()
        if os.path.lexists(before):
            before.rename(place)
