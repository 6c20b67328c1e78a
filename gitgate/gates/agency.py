"""Gates: the agents that this machine knows how to start again, and whose conversation a question belongs to.

How a program is started grants power, so it comes from the machine's own git configuration, else from the policy on the
protected branch: never from a gate, a session, or a file that another branch carries, not even where the configuration
includes one. A name may be that of a file there, which says what the program is told about itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..context.desk import Desk
from ..document.values import NamedTuple, replace
from ..errors import Usage
from ..model.conversation import SessionRef

if TYPE_CHECKING:
    from ..agents.agent import Agent, AgentSettings
    from ..model.gate import Gate


SECTION = "gitgate.agent."
STDIN = ("answer", "prompt", "none")
FOLDERS = (".claude/agents", ".gitgate/agents")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
# What an agent's file keeps from it, and the flag that says so: Claude Code's, which alone has them.
KEPT_FROM = {"tools": "--tools", "disallowedTools": "--disallowedTools"}


def adapter(name: str) -> Agent:
    """The adapter for an agent of that name: one of its own, or the one for any program."""
    from .. import agents

    return agents.adapter(name)


def starts_by_itself(name: str) -> bool:
    """Whether how the agent `name` is started is known here, and needs no setting."""
    return adapter(name).starts


def configured(desk: Desk, name: str) -> dict[str, list[str]]:
    """What this machine's configuration says of the agent `name`, by variable in lower case."""
    if not name or any(c in name for c in "\n\0"):
        return {}
    from ..store.git.repository import machine_values

    prefix = f"{SECTION}{name}."
    values = machine_values(desk.repo, r"^gitgate\.agent\.", nearest=True)
    said = {key.removeprefix(prefix): found for key, found in values.items() if key.startswith(prefix)}
    return said if "resume" in said or "start" in said else {**ruled(desk, name), **said}


def ruled(desk: Desk, name: str) -> dict[str, list[str]]:
    """How the policy of the protected branch starts an agent that this machine says nothing of."""
    import json

    from ..policy.rules import load_book

    if starts_by_itself(name) or name == "command":
        return {}
    found = next((p.commands[name] for p in load_book(desk).policies if name in p.commands), {})
    return {kind: [json.dumps(list(words))] for kind, words in found.items()}


def agent_settings(desk: Desk, name: str) -> AgentSettings:
    """How the agent `name` is started on this machine.

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
    """The same, and what it loads of the project's own where this machine does not say: as the policies do, all of them."""
    from ..policy.rules import load_book

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


class AgentStart(NamedTuple):
    """How an agent of a name is started: the program, and its settings with what it is told about itself.

    `before`: the same for a program that takes no instructions apart; it stands before the first prompt of a conversation.
    """

    name: str
    program: str
    settings: AgentSettings
    before: str = ""


def check_name(name: object) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Usage(
            f"{name!r} is not an agent's name: letters, digits, dots, dashes", hint='gitgate.run("coder")'
        )


def how_started(desk: Desk, name: str) -> AgentStart:
    """By this machine's `gitgate.agent.NAME.start`; by a file of that name on the protected branch; or as a program we know."""
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
    from ..policy.rules import protected_refs
    from ..store.git.objects import read_protected

    for folder in FOLDERS:
        found = read_protected(desk.records.objects, f"{folder}/{name}.md", protected_refs(desk))
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
    """How the conversation in which a gate was asked is opened again: a flow's agent stays the one that its file describes."""
    name = gate.opened.asked.agent
    if gate.opened.config.get("run") and name != program and NAME.fullmatch(name):
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
    """Why this machine cannot start the agent `name`; empty when it can, as far as can be known beforehand."""
    import shutil

    program = program_of(desk, name)
    if program is None:
        return f"no command is set that starts {name!r}: git config {SECTION}{name}.resume '…'"
    if "{" in program or ("/" in program and not program.startswith("/")):
        return ""  # Which program it is turns out only where the agent is started.
    found = shutil.which(program, path=desk.settings.env.get("PATH"))
    return "" if found else f"{program} is not on PATH"


def program_of(desk: Desk, name: str) -> str | None:
    """What is run for the agent `name`; None where nothing says so."""
    settings, known = agent_settings(desk, name), adapter(name)
    template = settings.resume_template or settings.start_template
    if known.starts and not (known.templated and template):
        return settings.program[0] if settings.program else known.executable or name
    return template[0] if template else None


def cannot_join(desk: Desk, name: str) -> str:
    """Why a person cannot talk to the agent `name` on this machine; empty when they can."""
    if starts_by_itself(name):
        return cannot_start(desk, name)
    if agent_settings(desk, name).join_template:
        return ""
    return f"no command is set that opens a conversation with {name!r}: git config {SECTION}{name}.join '…'"


def current_session(desk: Desk, agent: str | None, session: str | None) -> SessionRef | None:
    """Whose conversation a question belongs to: as it was given, else as the environment tells.

    One of a program that nothing here can start is only named by it: nobody would go on with it.
    """
    from ..agents import detect

    env = desk.settings.env
    known = agent or env.get("GITGATE_AGENT", "")
    found = detect(env)
    if found is not None and found.agent == "command" and known:
        found = SessionRef(known, found.id, found.directory)
    named = known if known and is_agent(desk, known) else ""
    if session:
        from ..agents.agent import need_session_id

        if found is not None and found.id == session and not named:
            return found
        program = named or owner(desk, known) or "claude"
        return SessionRef(program, need_session_id(session), str(desk.repo.place))
    if found is not None:
        return found if found.agent in (known, "command") or is_agent(desk, found.agent) else None
    if named and not starts_by_itself(named):
        # A program that is simply started again has no conversation of its own to be told by.
        return SessionRef(named, f"none-{desk.entropy(8)}", str(desk.repo.place))
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
    """Whether `name` is a program that can be started again, and not just what somebody calls their agent."""
    if starts_by_itself(name):
        return True
    prefix = f"{SECTION}{name}."
    return any(key.startswith(prefix) for key in desk.settings.git) or bool(ruled(desk, name))
