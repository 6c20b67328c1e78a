"""Setup: what `git gate init` does besides the clone itself, and what `--remove --purge` takes away: parts, the manual page, the server for clients of MCP."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from typing import NamedTuple as TypedTuple

from ..context import Desk, machine
from ..context.machine import state_home
from ..context.targets import summaries
from ..document import NamedTuple, replace
from ..errors import Conflict, Failure
from ..gates.work import worktrees
from ..store.git import Git
from ..store.git.refs import TRACKING
from ..store.work.restore import list_worktrees, without_place
from ..text import counted
from . import CloneWishes, steps
from .managed import Managed, ManagedText, Step, top_of

# The manual page, which git opens for `git gate --help`: whether `man` finds it, and a link to it where
# it does not.
#
# `man` looks beside each folder of PATH. A tool of `uv`, or a link to the command alone, is in PATH
# without its page.


PAGE = "man1/git-gate.1"
# Where `man` looks, seen from a folder of PATH; and wherever the PATH leads.
BESIDE = ("../share/man", "../man", "share/man", "man")
EVERYWHERE = ("/usr/local/share/man", "/usr/share/man")


def has_reader(env: Mapping[str, str]) -> bool:
    return shutil.which("man", path=search_path(env)) is not None


def is_found(env: Mapping[str, str]) -> bool:
    return any(page.is_file() for place in places(env) for page in (place / PAGE, place / f"{PAGE}.gz"))


def search_path(env: Mapping[str, str]) -> str:
    return env.get("PATH", os.defpath)


def folders(env: Mapping[str, str]) -> list[Path]:
    """Those of PATH that say where they are wherever one stands."""
    return [Path(one) for one in search_path(env).split(os.pathsep) if one.startswith("/")]


def places(env: Mapping[str, str]) -> list[Path]:
    """Return the folders that `man` searches. MANPATH replaces all others, unless an empty entry in it includes them."""
    said = env.get("MANPATH", "")
    named = [Path(one) for one in said.split(os.pathsep) if one]
    if said and all(said.split(os.pathsep)):
        return named
    beside = [Path(os.path.normpath(folder / one)) for folder in folders(env) for one in BESIDE]
    return [*named, *beside, *map(Path, EVERYWHERE)]


def place_for(env: Mapping[str, str]) -> Path | None:
    """Return a folder where `man` finds a link to the page and where it may be made: at home first, then next to the
    command.
    """
    beside = [folder for folder in folders(env) if os.access(folder / "git-gate", os.X_OK)]
    home = [Path(env["HOME"], ".local/bin")] if env.get("HOME") else []
    looked_at = places(env)
    for folder in (*home, *beside):
        place = Path(os.path.normpath(folder / BESIDE[0]))
        if place in looked_at and is_writable(place) and page_of() is not None:
            return place
    return None


def is_writable(place: Path) -> bool:
    """Return whether the folder is writable, or could be made."""
    there = next((one for one in (place / PAGE, *(place / PAGE).parents) if one.is_dir()), place)
    return os.access(there, os.W_OK)


def page_of() -> Path | None:
    """Return the page's file in this installation: with its programs, in the package, or in the checkout; None without
    one.
    """
    package = Path(__file__).resolve().parents[1]
    found = (Path(sys.prefix, "share/man", PAGE), package / "git-gate.1", package.parent / "docs/git-gate.1")
    return next((one for one in found if one.is_file()), None)


def noted(env: Mapping[str, str]) -> Path | None:
    """Return the note that says a link is ours: `pipx` makes one of its own, which we must not delete."""
    home = machine.state_home(env)
    return home / "manual" if home else None


def ours(env: Mapping[str, str]) -> Path | None:
    """The link that `init` made, as long as it is one."""
    note = noted(env)
    try:
        link = Path(note.read_text("utf-8", "surrogateescape")) if note else None
    except OSError:
        return None
    return link if link is not None and link.is_symlink() else None


def link_steps(desk: Desk) -> Iterator[Step]:
    """The link to it, where it is needed and helps: none where `man` is missing."""
    env = desk.settings.env
    note, place, found = noted(env), place_for(env), is_found(env)
    if note is None or place is None or not has_reader(env):
        return
    link = place / PAGE
    if not found or ours(env) == link:
        yield Step(f"manual page {link}", "git gate --help opens it", found, lambda: make(link, note))


def make(link: Path, note: Path) -> None:
    page = page_of()
    if page is None:
        return
    note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    note.write_text(str(link), "utf-8", "surrogateescape")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)  # one that leads nowhere: of an installation that is gone
    link.symlink_to(page)


def link_removal(desk: Desk) -> Iterator[Step]:
    """Our link, once this was the last repository of this person that is set up."""
    env = desk.settings.env
    note, link = noted(env), ours(env)
    if note is None or link is None or any(one != desk.repo.place for one in machine.repositories(env)):
        return

    def take() -> None:
        link.unlink(missing_ok=True)
        note.unlink(missing_ok=True)

    yield Step(f"manual page {link}", "taken away: no other repository is set up", False, take)


# `git gate mcp` registered with a client, in the file of the project in which that client looks for
# servers. It is to be committed, so that every clone's agents have the tools. Whatever else stands there
# stays.


SERVER = "gitgate"
COMMAND, ARGUMENTS = "git-gate", ["mcp"]
BEGIN, END = "# git-gate: begin", "# git-gate: end"


class McpClient(TypedTuple):
    """A client: how it is called, its file, under which name that has servers, and one of them in its form."""

    name: str
    program: str
    file: str
    under: str
    entry: Mapping[str, object]
    then: str


PLAIN: Mapping[str, object] = {"command": COMMAND, "args": ARGUMENTS}
TYPED: Mapping[str, object] = {"type": "stdio", **PLAIN}
CLIENTS: tuple[McpClient, ...] = (
    McpClient(
        "claude",
        "Claude Code",
        ".mcp.json",
        "mcpServers",
        TYPED,
        "it asks once whether the project's servers may start",
    ),
    McpClient(
        "codex",
        "Codex",
        ".codex/config.toml",
        "mcp_servers",
        PLAIN,
        "it starts them in a project that it trusts: codex --trust",
    ),
    McpClient(
        "gemini",
        "Gemini CLI",
        ".gemini/settings.json",
        "mcpServers",
        PLAIN,
        "it starts them in a folder that it trusts",
    ),
    McpClient(
        "opencode",
        "opencode",
        "opencode.json",
        "mcp",
        {"type": "local", "command": [COMMAND, *ARGUMENTS], "enabled": True},
        "it starts them by itself",
    ),
    McpClient(
        "vscode", "VS Code", ".vscode/mcp.json", "servers", TYPED, "it asks whether the server is trusted"
    ),
)
NAMES = tuple(client.name for client in CLIENTS)


def mcp_part(desk: Desk, names: Sequence[str] = NAMES) -> list[Managed]:
    """Return our server in the files of these clients."""
    return [registration(desk, client) for client in CLIENTS if client.name in names]


def registration(desk: Desk, client: McpClient) -> ManagedText:
    """Return our server in one client's file."""
    return ManagedText(
        top_of(desk),
        client.file,
        f"{client.program} has git gate's tools: {client.then} (commit it)",
        add=lambda text: with_server(text, client),
        drop=lambda text: without_server(text, client) if text else text,
        part=SERVER,
        removed="taken away; other servers stay",
    )


def with_server(text: str, client: McpClient) -> str:
    if client.file.endswith(".toml"):
        return with_table(text, client)
    here = parse_client_settings(text, client)
    servers = here.get(client.under, {})
    if servers.get(SERVER) == dict(client.entry):
        return text
    return written({**here, client.under: {**servers, SERVER: dict(client.entry)}})


def without_server(text: str, client: McpClient) -> str:
    if client.file.endswith(".toml"):
        return re.sub(rf"\n?{BEGIN}\n.*?{END}\n", "", text, flags=re.DOTALL)
    here = parse_client_settings(text, client)
    servers = here.get(client.under, {})
    if SERVER not in servers:
        return text
    left = {name: one for name, one in servers.items() if name != SERVER}
    rest = {name: one for name, one in here.items() if name != client.under or left}
    if left:
        rest[client.under] = left
    return written(rest) if rest else ""


def written(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def parse_client_settings(text: str, client: McpClient) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as wrong:
        raise Failure(
            f"{client.file} is not JSON, so that nothing can be added to it: {wrong}",
            hint=f'put it there yourself, under {client.under}: "{SERVER}": {json.dumps(dict(client.entry))}',
        ) from wrong
    if not isinstance(found, dict) or not isinstance(found.get(client.under, {}), dict):
        raise Failure(
            f"{client.file} is not in the form of {client.program}'s settings: {client.under} is no object",
            hint="mend it, and run this again",
        )
    return found


def with_table(text: str, client: McpClient) -> str:
    """The file with our table at its end, between marks: no writer of TOML takes part, so that every other line stays as it is."""
    try:
        known = tomllib.loads(text).get(client.under, {})
    except tomllib.TOMLDecodeError as wrong:
        raise Failure(f"{client.file} is not TOML: {wrong}", hint="mend it, and run this again") from wrong
    if isinstance(known, dict) and known.get(SERVER) == dict(client.entry):
        return text
    without = without_server(text, client)
    if isinstance(known, dict) and SERVER in known and without == text:
        raise Failure(
            f"{client.file} has another server called {SERVER}",
            hint=f"take [{client.under}.{SERVER}] out there",
        )
    entry = "\n".join(f"{name} = {json.dumps(value)}" for name, value in client.entry.items())
    before = f"{without.rstrip()}\n\n" if without.strip() else ""
    return f"{before}{BEGIN}\n[{client.under}.{SERVER}]\n{entry}\n{END}\n"


# What `git gate init` does besides the clone itself, and what `--remove --purge` takes away. A new part
# is one line.
#
# For the part `x` its module has `x_part(desk)`: a list of what is managed.


class Part(NamedTuple):
    """A flag of `git gate init`: what it adds, and the module that knows how."""

    flag: str
    meaning: str
    module: str


PARTS: tuple[Part, ...] = (
    Part("claude", "Claude Code's hooks and skill, in this project.", "gitgate.setup"),
    Part("agents", "Guidance for other agents, in AGENTS.md.", "gitgate.setup"),
    Part("script", "scripts/ask-human.sh, by which any program asks.", "gitgate.setup"),
    Part(
        "flows",
        "An example flow, its agents, and a workflow that runs it on a label.",
        "gitgate.setup.workflows",
    ),
    Part("github", "GitHub's workflows: pull requests as the place to answer.", "gitgate.setup.workflows"),
    Part("gitlab", "GitLab's pipeline: merge requests as the place to answer.", "gitgate.setup.workflows"),
)


class InitChoice(NamedTuple):
    """Choices of a person who runs `init`. None keeps an earlier choice."""

    server: bool = False
    publish_work: bool | None = None
    resume: bool | None = None
    parts: Sequence[Part] = ()
    clients: Sequence[str] = ()


def wanted(desk: Desk, chosen: InitChoice) -> list[Step]:
    """Every step to take, those included that were taken already."""
    wishes = CloneWishes(
        chosen.server,
        permitted(desk, "publishwork", chosen.publish_work),
        permitted(desk, "resumehere", chosen.resume),
    )
    found = [*steps(desk, wishes), *link_steps(desk)]
    managed = [one for part in chosen.parts for one in managed_by(part, desk)]
    if chosen.clients:
        managed += mcp_part(desk, chosen.clients)
    return [*found, *(one.write() for one in managed)]


def permitted(desk: Desk, setting: str, said: bool | None) -> bool:
    """A no that was said before stands until somebody takes it back: `init` is run again for other reasons."""
    return desk.settings.git.get(f"gitgate.{setting}") != "false" if said is None else said


def planned_removal(
    desk: Desk, parts: Sequence[Part] = (), *, clients: Sequence[str] = (), purge: bool = False
) -> list[Step]:
    """Return the steps that remove the named parts; without names everything that `init` did, and with `purge` all
    that was kept besides.
    """
    from .. import setup

    named = parts or clients
    managed: list[Managed] = []
    if desk.repo.top is not None:  # a bare repository has no project
        managed += [one for part in (parts if named else PARTS) for one in managed_by(part, desk)]
        managed += mcp_part(desk, clients if named else NAMES)
    found = [one.remove() for one in managed]
    if named:
        return found
    kept = [*link_removal(desk), *purge_steps(desk)] if purge else []
    return [*found, *setup.removal_steps(desk), *kept]


def managed_by(part: Part, desk: Desk) -> list[Managed]:
    """Return what a part manages, from the module that knows it."""
    found: list[Managed] = getattr(import_module(part.module), f"{part.flag}_part")(desk)
    return found


def take_steps(found: Sequence[Step]) -> list[Step]:
    """Take each that is to be taken; all of them as they are then."""
    for step in found:
        if not step.done:
            step.take()
    return [replace(step, done=True) for step in found]


ERASE = "git for-each-ref --format='delete %(refname)' refs/hitl | git update-ref --stdin"


def purge_steps(desk: Desk) -> list[Step]:
    """Return the steps of a purge in their order; anything at work or not committed stops all of it beforehand."""
    busy = [one.id for one in summaries(desk) if one.state == "resuming"]
    if busy:
        raise Conflict(
            f"{counted(len(busy), 'gate')} is being acted on: {', '.join(busy)}",
            hint=f"git gate wait {busy[0][:6]}, or stop its agent; then run this again",
        )
    if desk.repo.standing_dir.exists():
        raise Conflict(
            "files that configure agents stand here as the protected branch has them, and the branch's own are not back yet",
            hint="git gate doctor",
        )
    found = (trees(desk), settings_step(desk), refs(desk), state_step(desk), home(desk))
    return [step for step in found if step is not None]


def trees(desk: Desk) -> Step | None:
    """Working trees of resumed agents."""
    ours = worktrees(desk)
    found = [one.path for one in list_worktrees(desk.repo) if one.path.is_relative_to(ours)]
    for place in found:
        if place.is_dir() and changed(desk, place):
            raise Conflict(
                f"an agent left uncommitted work in {place}",
                hint=f"commit it there, or: git worktree remove --force {place}",
            )

    def take() -> None:
        for place in found:
            desk.repo.git.run("worktree", "remove", "--force", "--", str(place), check=False)
        desk.repo.git.run("worktree", "prune")
        with suppress(OSError):  # others are in it, or it was never made
            ours.rmdir()

    name = f"{len(found)} working {'tree' if len(found) == 1 else 'trees'} of resumed agents"
    return Step(name, "taken away; their commits stay", False, take) if found else None


def changed(desk: Desk, place: Path) -> bool:
    said = Git(place, without_place(desk.repo.git.env)).run("status", "--porcelain", check=False)
    return bool(said.code or said.out.strip())


def settings_step(desk: Desk) -> Step | None:
    """Every `gitgate.*` of this repository, a person's own included; the machine's own settings stay."""
    said = desk.repo.git.run(
        "config", "--local", "--name-only", "-z", "--get-regexp", r"^gitgate\.", check=False
    )
    keys = [key for key in said.out.decode("utf-8", "surrogateescape").split("\0") if key]
    sections = sorted({key.rpartition(".")[0] for key in keys} | {"gitgate"})

    def take() -> None:
        for section in sections:
            desk.repo.git.run("config", "--local", "--remove-section", section, check=False)

    return Step("every gitgate.* of this repository", "forgotten", False, take) if keys else None


def refs(desk: Desk) -> Step | None:
    """Return the step that deletes the refs seen at remotes and the records set apart; None if there are none."""
    found = desk.refs.under(TRACKING)

    def take() -> None:
        lines = "".join(f"delete {name} {tip}\n" for name, tip in found.items())
        desk.repo.git.run("update-ref", "--stdin", input=lines.encode())

    return Step(f"{TRACKING}* ({counted(len(found), 'ref')})", "taken away", False, take) if found else None


def state_step(desk: Desk) -> Step | None:
    """Logs, notes, drafts and locks; another account's folder beside them is that account's. The outbox is all accounts'."""
    place, shared = desk.repo.state_dir, desk.repo.common_dir / "gitgate-outbox"
    locks = [file for file in desk.repo.common_dir.glob("gitgate-*.lock") if file.is_file()]

    def take() -> None:
        for folder in (place, shared):
            shutil.rmtree(folder, ignore_errors=True)
        for lock in locks:
            lock.unlink(missing_ok=True)

    there = place.exists() or shared.exists() or locks
    return Step(str(place), "logs, drafts, notes and locks taken away", False, take) if there else None


def home(desk: Desk) -> Step | None:
    """Return the step that deletes the state kept for all of a person's repositories, once this was the last one."""
    place = state_home(desk.settings.env)
    others = [one for one in machine.repositories(desk.settings.env) if one != desk.repo.place]
    if place is None or others or not place.exists():
        return None

    def take() -> None:
        for folder in ("slots", "outbox"):
            shutil.rmtree(place / folder, ignore_errors=True)
        for name in ("repositories", "repositories.lock"):
            (place / name).unlink(missing_ok=True)
        for empty in (place / "worktrees", place):
            with suppress(OSError):  # something else is in it
                empty.rmdir()

    return Step(str(place), "taken away: no other repository is set up", False, take)
