"""Setup: what `git gate init` does, as a list of steps that can be shown, taken, and taken back; and Claude Code's part of a project.

Running it is how a person consents: to publishing partial work, and to agents being started here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.claude.command import SHIM, hook_settings, plugin_folder
from ..context import Desk, machine
from ..context.targets import remote_of
from ..document import dataclass
from ..errors import Failure, Usage
from ..gates import agency
from ..policy import project
from ..store.remote import tracking_base
from ..text import counted
from .managed import Managed, ManagedSetting, ManagedText, Step, configure, refuse_foreign, text_of, top_of

if TYPE_CHECKING:
    from ..store import Misfit

# What `git gate init` does, as a list of steps that can be shown, taken, and taken back.
#
# Running it is how a person consents: to publishing partial work, and to agents being started here.


HIDING, REPLACE = "receive.hideRefs", "refs/replace"


@dataclass(frozen=True)
class CloneWishes:
    """Choices of `init` for this clone."""

    server: bool = False
    publish_work: bool = True
    resume: bool = True


def steps(desk: Desk, wishes: CloneWishes) -> list[Step]:
    """Everything that sets this repository up, what is done already included."""
    if desk.repo.bare and desk.settings.git.get("core.bare") == "false":
        raise Usage(
            "this is inside a repository's own folder, beside its working tree", hint="cd ..; git gate init"
        )
    if desk.repo.bare and not wishes.server:
        raise Usage("this is a bare repository, which others push to", hint="git gate init --server")
    if wishes.server and not desk.repo.bare:
        raise Usage("--server is for a bare repository, which others push to", hint="git gate init")
    remote = None if wishes.server else remote_of(desk)
    return [
        setting(desk, "initialised", value=True, words="this clone is set up for gates").write(),
        *consents(desk, wishes, remote),
        *([refspec(desk, remote)] if remote else []),
        *hooks(desk),
        *modes(desk),
        known_step(desk),
    ]


def consents(desk: Desk, wishes: CloneWishes, remote: str | None) -> list[Step]:
    """Return the steps of `init` that permit something, each said plainly."""
    runs = "an answer that arrives here starts the agent again on this machine, with your rights (--no-resume forbids it)"
    stays = "no agent is started here by itself; you do it with: git gate resume"
    if wishes.server:
        shared = "gates are shared through this repository itself"
        return [
            setting(desk, "server", value=True, words=shared).write(),
            setting(desk, "resumeHere", value=wishes.resume, words=runs if wishes.resume else stays).write(),
            hiding(desk),
        ]
    goes = (
        f"each question pushes the partial work to {remote or 'the remote'}: unpublished commits, changed and untracked "
        "files; the agent's commits go to its branch (--no-publish-work keeps them here)"
    )
    kept = "partial work stays in this clone; only questions and answers are pushed"
    return [
        setting(
            desk, "publishWork", value=wishes.publish_work, words=goes if wishes.publish_work else kept
        ).write(),
        setting(desk, "resumeHere", value=wishes.resume, words=runs if wishes.resume else stays).write(),
    ]


def setting(desk: Desk, name: str, *, value: bool = True, words: str = "") -> ManagedSetting:
    """Return a switch of ours in this repository's configuration."""
    return ManagedSetting(desk, f"gitgate.{name}", "true" if value else "false", words)


def hiding(desk: Desk) -> Step:
    """Git itself follows such refs where it checks what is pushed, and a bad one stops every push."""
    return Step(
        f"config {HIDING} {REPLACE}",
        f"a push of {REPLACE}/*, which would have git read one object as another, is refused",
        REPLACE in hidden(desk),
        lambda: configure(desk, "--add", HIDING, REPLACE),
    )


def hidden(desk: Desk) -> list[str]:
    return (
        desk.repo.git.run("config", "--get-all", HIDING, check=False).out.decode("utf-8", "replace").split()
    )


def spec_of(remote: str) -> str:
    return f"+refs/hitl/open/*:{tracking_base(remote)}open/*"


def refspec(desk: Desk, remote: str) -> Step:
    key, spec = f"remote.{remote}.fetch", spec_of(remote)
    listed = (
        desk.repo.git.run("config", "--get-all", key, check=False).out.decode("utf-8", "replace").split("\n")
    )
    return Step(
        f"config {key} {spec}",
        f"git fetch {remote} brings gates along",
        spec in listed,
        lambda: configure(desk, "--add", key, spec),
    )


def hooks(desk: Desk) -> list[Step]:
    folder = agency.hooks_folder(desk.repo)
    if folder is None:
        return []
    means = {
        "pre-receive": "a push that would change or lose a gate is refused",
        "post-receive": "an answer that is pushed here resumes its agent",
    }
    return [hook(desk, name, means[name]) for name in agency.NAMES]


def hook(desk: Desk, name: str, words: str) -> Step:
    folder = agency.hooks_folder(desk.repo) or desk.repo.common_dir / "hooks"
    state = agency.state(folder, name)
    if state == "foreign":
        words += f"; the hook that is there runs first, as {name}{agency.BEFORE}"
    return Step(f"hook {name}", words, state == "current", lambda: agency.install(folder, name))


def wrong_modes(desk: Desk) -> Iterator[Misfit]:
    """Yield files that others cannot read although the repository is shared, and files that others could read although
    one account owns them.

    In a clone of one person, whose umask may be narrow on purpose, git's own files are left alone.
    """
    from .. import store

    shared = store.read_sharing(desk.settings.git)
    yield from store.folder_misfits(desk.repo.state_dir)
    if desk.repo.bare or shared.bits:
        yield from store.narrowed(desk.repo.common_dir, shared)


def modes(desk: Desk) -> list[Step]:
    """Return the step that corrects the modes of this account's files, if any are wrong; `doctor` names files of other
    accounts.
    """
    ours = [one for one in wrong_modes(desk) if one.ours]
    if not ours:
        return []

    def mend() -> None:
        for one in ours:
            one.mend()

    words = (
        "git's files can be read by whom the repository is for, and what git gate keeps by this account alone"
    )
    return [Step(f"modes of {counted(len(ours), 'file')}", words, False, mend)]


def known_step(desk: Desk) -> Step:
    place, env = desk.repo.place, desk.settings.env
    return Step(
        "known repository",
        "git gate list --everywhere and git gate worker --everywhere include it",
        place in machine.read_registry(env),
        lambda: machine.register(env, place),
    )


def removal_steps(desk: Desk) -> list[Step]:
    """Everything that `init` did, undone; gates, sessions and settings of the person's own stay."""
    keys = ("initialised", "publishWork", "resumeHere", "server")
    folder = agency.hooks_folder(desk.repo)
    found = [setting(desk, key).remove() for key in keys]
    for key, spec in refspecs(desk):
        found.append(
            Step(f"config {key}", "git fetch brings no gates any more", False, drop(desk, key, spec))
        )
    if REPLACE in hidden(desk):
        words = f"{REPLACE}/* can be pushed again"
        found.append(Step(f"config {HIDING}", words, False, drop(desk, HIDING, REPLACE)))
    if folder is not None:
        found.extend(taken_away(folder, name) for name in agency.NAMES)
    place, env = desk.repo.place, desk.settings.env
    gone = place not in machine.read_registry(env)
    found.append(Step("known repository", "forgotten", gone, lambda: machine.unregister(env, place)))
    return found


def taken_away(folder: Path, name: str) -> Step:
    before = (folder / f"{name}{agency.BEFORE}").exists()
    words = "taken away; what was there before is back" if before else "taken away"
    gone = not agency.is_ours(folder / name)
    return Step(f"hook {name}", words, gone, lambda: agency.remove(folder, name))


def drop(desk: Desk, key: str, spec: str) -> Callable[[], None]:
    return lambda: configure(desk, "--fixed-value", "--unset-all", key, spec)


def refspecs(desk: Desk) -> list[tuple[str, str]]:
    """The fetch lines that are ours."""
    listed = desk.repo.git.run("config", "-z", "--get-regexp", r"^remote\..*\.fetch$", check=False).out
    pairs = (entry.partition("\n")[::2] for entry in listed.decode("utf-8", "surrogateescape").split("\0"))
    return [(key, spec) for key, spec in pairs if spec.startswith("+refs/hitl/open/*:refs/gitgate/")]


TEXTS = Path(__file__).resolve().parents[1] / "texts"
AGENTS, SCRIPT = "AGENTS.md", "scripts/ask-human.sh"
BEGIN = "<!-- git gate: begin (kept by `git gate init --agents`) -->"
END = "<!-- git gate: end -->"
OURS = "(written by `git gate init --script`)"


# A section between marks


def with_section(text: str, section: str) -> str:
    """`text` with our section, in its old place or at the end; empty text takes it away."""
    before, begin, rest = text.partition(BEGIN)
    inner, end, after = rest.partition(END)
    if begin and not end:
        raise Failure(
            f"a line `{END}` is missing", hint="put it where the section ends, or take the first mark away"
        )
    del inner
    if not begin:
        before, after = (f"{text.rstrip()}\n\n" if text.strip() else ""), "\n"
    if not section:
        rest = f"{before.rstrip()}\n\n{after.lstrip()}".strip()
        return f"{rest}\n" if rest else ""
    return f"{before}{BEGIN}\n{section.strip()}\n{END}{after}"


def agents_part(desk: Desk) -> list[Managed]:
    """Return the guidance for agents without a plugin."""
    return [
        ManagedText(
            top_of(desk),
            AGENTS,
            "agents without a plugin are told when to ask a person, and how",
            add=lambda text: with_section(text, text_of(TEXTS / AGENTS)),
            drop=lambda text: with_section(text, "") if BEGIN in text else text,
            part="section",
            removed="taken away; the rest stays",
        )
    ]


# A script of its own


def script_part(desk: Desk) -> list[Managed]:
    """Return the script by which any program asks."""

    def add(text: str) -> str:
        refuse_foreign(SCRIPT, text, OURS)
        return text_of(TEXTS / Path(SCRIPT).name)

    return [
        ManagedText(
            top_of(desk),
            SCRIPT,
            "./scripts/ask-human.sh QUESTION [text|yesno|select] [A,B,C] asks a person, waits and prints the answer",
            add,
            drop=lambda text: "" if OURS in text else text,
            executable=True,
        )
    ]


# Claude Code's part of a project: hooks in its settings, the shim that they call, and the skill. They
# stand in the project, to be committed, so that every clone's agents ask. Settings of the project's own
# are kept.
#
# And what the program may do without being asked: in a job, whose home is empty and whose folder is
# trusted by nobody, it would otherwise edit nothing, and nobody sees that it wanted to. The checkout is
# the job's own and is gone after it; what gets out is commits on the agent's branch, and gates.


SETTINGS, PLACED, SKILL = (
    ".claude/settings.json",
    ".claude/gitgate-hook",
    ".claude/skills/asking-a-person/SKILL.md",
)
MARK = "gitgate-hook"
PROGRAM = "gitgate.program"


def claude_part(desk: Desk) -> list[Managed]:
    """Return Claude Code's part: the place of git gate, the shim that hooks call, the hooks, and the skill."""
    top, plugin = top_of(desk), plugin_folder()
    return [
        # A hook looks there when it does not find git gate on PATH.
        ManagedSetting(
            desk,
            PROGRAM,
            str(Path(sys.executable).parent / "git-gate"),
            "where hooks find git gate when it is not on PATH",
        ),
        copied(
            top,
            PLACED,
            plugin / SHIM,
            "the hooks call it; without git gate it denies questions instead of passing them",
        ),
        ManagedText(
            top,
            SETTINGS,
            "Claude Code's questions, and calls that .gitgate.yml names, become gates (commit it with the two others)",
            add=lambda text: settings_text(
                text, top / SETTINGS, hook_settings(f'sh "$CLAUDE_PROJECT_DIR"/{PLACED}')
            ),
            drop=lambda text: settings_text(text, top / SETTINGS, {}),
            part="hooks",
            removed="taken away; other settings stay",
        ),
        copied(
            top,
            SKILL,
            plugin / "skills/asking-a-person/SKILL.md",
            "teaches when to ask, and what a good question has",
        ),
    ]


def copied(top: Path, name: str, source: Path, means: str) -> ManagedText:
    """Return a file that is written as the plugin has it."""

    def add(_: str) -> str:
        text = text_of(source)
        if not text:
            raise Failure("the plugin is not part of this installation", hint=agency.REINSTALL)
        return text

    return ManagedText(top, name, means, add, drop=lambda _: "", executable=name == PLACED)


def settings_text(text: str, place: Path, ours: dict[str, object]) -> str:
    """Return the text of Claude Code's settings with these hooks of ours alone; as it was, where it has them already."""
    here = parse_settings(text, place)
    wanted = with_hooks(here, ours)
    if here == wanted:
        return text
    return dump_settings(wanted) if wanted else ""


def dump_settings(value: dict[str, Any]) -> str:
    """Return settings as their file's text."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_settings(place: Path) -> dict[str, Any]:
    """Return what Claude Code's settings in this file say; nothing where there is none."""
    return parse_settings(text_of(place), place)


def settings_with_mark(top: Path) -> bool:
    """Return whether our hooks stand in a project's own settings, as they are in its working tree."""
    return MARK in text_of(top / SETTINGS)


def parse_settings(text: str, place: Path) -> dict[str, Any]:
    """Return what Claude Code's settings say; `place` is named where they cannot be read."""
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as wrong:
        raise Failure(f"{place} is not JSON: {wrong}", hint="mend it, and run this again") from wrong
    if not isinstance(found, dict) or not isinstance(found.get("hooks", {}), dict):
        raise Failure(
            f"{place} is not in the form of Claude Code's settings", hint="mend it, and run this again"
        )
    return found


def with_hooks(here: dict[str, Any], ours: dict[str, object]) -> dict[str, Any]:
    """The settings with our hooks and no older ones of ours; every other hook stays where it was."""
    hooks: dict[str, Any] = {}
    for event in dict.fromkeys((*here.get("hooks", {}), *ours)):
        before = here.get("hooks", {}).get(event, [])
        others = (
            [kept for entry in before if (kept := without_ours(entry))]
            if isinstance(before, list)
            else before
        )
        mine = ours.get(event, [])
        if others or mine:
            hooks[event] = [*others, *mine] if isinstance(mine, list) else others
    rest = {name: value for name, value in here.items() if name != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def without_ours(entry: Any) -> Any:
    if not isinstance(entry, dict) or not isinstance(entry.get("hooks"), list):
        return entry
    kept = [
        hook
        for hook in entry["hooks"]
        if MARK not in str(hook.get("command") if isinstance(hook, dict) else "")
    ]
    if len(kept) == len(entry["hooks"]):
        return entry
    return {**entry, "hooks": kept} if kept else None


def in_job(env: Mapping[str, str]) -> bool:
    """Return whether this is a job of GitHub Actions, of Gitea, which sets the same variables, or of GitLab CI."""
    return "true" in (env.get("GITHUB_ACTIONS"), env.get("GITLAB_CI"))


def permissions_of(desk: Desk, program: str) -> dict[str, list[str]]:
    """Return the permissions that the project's protected branch grants and denies, and in a job those that work there
    needs too. A denial wins.
    """
    found = dict(project.permissions(desk, program))
    from ..agents import adapter

    besides = adapter(program).job_rules if in_job(desk.settings.env) else ()
    if besides:
        found["allow"] = list(dict.fromkeys((*found.get("allow", ()), *besides)))
    return found
