"""Gates: whether people are to hear of gates from here, and a process that tells them (`surfaces.notify`).

Nothing is loaded, and nothing started, where nobody is to be told. What addresses are called is said here as well: a
question may name them, and brings none along.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..context.desk import Desk
from ..errors import GateError, Usage
from ..text.display import one_line

NAMED = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,39})=(.*)", re.DOTALL)


def tell_people(desk: Desk) -> None:
    """Have those told who want to hear of gates (`surfaces.notify`), by a process that nobody waits for; none is started
    where nobody is to be told.
    """
    if not is_told_of(desk):
        return
    with suppress(OSError):  # what waits is told by the next one
        start_sender(desk.repo.place, desk.settings.env, desk.repo.state_dir / "logs" / "notify.log")


def start_sender(place: Path, env: Mapping[str, str], log: Path) -> None:
    """By a process of its own. The repository is named: who pushes need not be who owns it."""
    from ..agents import without_caller
    from ..store.git.programs import detach, our_command

    bare = {"GIT_DIR": str(place)} if (place / "objects").is_dir() else {}
    detach(our_command("hook", "notify", at=place), place, {**without_caller(env), **bare}, log)


def is_told_of(desk: Desk) -> bool:
    """Whether somebody may have to be told from here: by this machine's configuration; on a server by its branch, too."""
    if "gitgate.notify" in desk.settings.git or desk.settings.flag("notify.shared"):
        return True
    return desk.settings.flag("server") and branch_tells(desk)


def branch_tells(desk: Desk) -> bool:
    """Whether the protected branch may name somebody. It is read when it has moved: a push in between starts no git for this."""
    from ..policy.rules import protected_refs

    refs = protected_refs(desk)
    known = desk.repo.state_dir / "told-by-branch"
    now = stamp(desk, refs)
    with suppress(OSError, ValueError):
        before, _, word = known.read_text("utf-8").rpartition(" ")
        if before == now:
            return word == "yes"
    from ..config import FILE
    from ..document.values import may_have
    from ..store.git.objects import read_protected
    from ..store.git.permissions import private_folder

    found = read_protected(desk.records.objects, FILE, refs)
    tells = found is not None and may_have(found.data, "notify")
    with suppress(OSError):
        private_folder(known.parent)
        known.write_text(f"{now} {'yes' if tells else 'no'}", "utf-8")
    return tells


def stamp(desk: Desk, refs: Sequence[str]) -> str:
    """What changes when one of these branches moves: git puts a new file in place of each that says where it is."""
    said = []
    for name in ("HEAD", "packed-refs", "reftable/tables.list", *refs):
        try:
            found = (desk.repo.common_dir / name).stat()
        except OSError:
            said.append("-")
        else:
            said.append(f"{found.st_mtime_ns}:{found.st_ino}:{found.st_size}")
    return " ".join(said)


def check_names(desk: Desk, names: Sequence[str]) -> None:
    """Usage where a question names nobody who is known here, by this machine or by the protected branch."""
    for name in names:
        if not name.replace("_", "").replace("-", "").isalnum():
            raise Usage(
                f"--notify {one_line(name, 40)!r}: expected the name of an address, and no address",
                hint="their names: git gate notify",
            )
    known = names_here(desk) if names else []
    unknown = [name for name in names if name not in known]
    if known and unknown:  # who knows none leaves it to the server
        raise Usage(
            f"--notify {unknown[0]}: no address is called so here; there are {', '.join(known)}",
            hint="see them: git gate notify   another one: a name and an address in `notify:` of .gitgate.yml, on the protected branch",
        )


def names_here(desk: Desk) -> list[str]:
    """What the addresses are called that this machine's configuration and the protected branch have."""
    from ..config import FILE
    from ..document import codec
    from ..document.values import may_have
    from ..policy.rules import protected_refs
    from ..store.git.objects import read_protected
    from ..store.git.repository import machine_values

    lines = machine_values(desk.repo, r"^gitgate\.notify$").get("gitgate.notify", [])
    found = [named[1] if (named := NAMED.fullmatch(line.strip())) else usual_name(line) for line in lines]
    with suppress(GateError):
        branch = read_protected(desk.records.objects, FILE, protected_refs(desk))
        if branch is not None and may_have(branch.data, "notify"):
            section = codec.parse_document(branch.data, branch.source).get("notify")
            for entry in section.items() if section is not None else []:
                name, address = entry.get("name"), entry.get("address")
                if name is not None or address is not None:
                    found.append(name.text() if name is not None else usual_name(address.text()))  # type: ignore[union-attr]
    return sorted(set(found))


def usual_name(address: str) -> str:
    """How an address is called that was given no name: by its first word, a chat by what stands before `://`."""
    word = address.strip().partition(" ")[0]
    scheme, chat, _ = word.partition("://")
    if not chat:
        return word
    return scheme if NAMED.fullmatch(f"{scheme}=") else "apprise"
