"""Store: the commit that takes closed gates into a month's archive. Objects only; no ref moves here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .archive import LATE, folder
from .objects import COMMIT, FOLDER, REGULAR, TREE, Objects, TreeEntry, dump_commit, dump_tree, parse_commit
from .objects import parse_tree as parse
from .records import Signature
from .repository import Repository

ROOT_AUTHOR = "gitgate <gitgate@localhost>"
_ANSWER = re.compile(r"answers/([A-Za-z0-9][A-Za-z0-9._-]{0,120})")


@dataclass(frozen=True)
class Late:
    """Words that reached a gate after it was archived: the tip that has them, and the files it adds."""

    id: str
    tip: str
    files: Mapping[str, str] = field(default_factory=dict)


def late_words(repo: Repository, gate: str, tip: str, known: Iterable[str]) -> Late:
    """What `tip` says beyond the `known` tips of the same gate; only answers become files, all commits stay."""
    said = repo.git.out(
        *(
            "log",
            "--first-parent",
            "--diff-merges=first-parent",
            "--format=",
            "--raw",
            "-r",
            "-z",
            "--no-abbrev",
        ),
        *("--no-renames", "--no-show-signature", "--diff-filter=A", tip, "--not", *known, "--"),
    ).split(b"\0")
    files: dict[str, str] = {}
    for head, path in zip(said[0::2], said[1::2], strict=False):
        fields = head.decode().split()
        name = _ANSWER.fullmatch(path.decode("utf-8", "replace"))
        if name and len(fields) == 5 and fields[1] == REGULAR:
            files[name[1]] = fields[3]
    return Late(gate, tip, files)


class Binder:
    """Builds folds. The same gates on the same base give the same tree, whoever builds it."""

    def __init__(self, repo: Repository, objects: Objects, by: Signature) -> None:
        self.objects = objects
        self.by = by
        self.width = len(repo.zero) // 2

    def fold(
        self, what: str, base: str | None, gates: Sequence[tuple[str, str]], late: Sequence[Late] = ()
    ) -> str:
        """A commit on `base` (none: on an empty root) that takes these gates, each with the commit it ends at."""
        base = base or self.root(what)
        tree = self.tree(self.commit_tree(base), gates, late)
        lines = [f"{gate} {tip}" for gate, tip in gates] + [f"{one.id} {LATE} {one.tip}" for one in late]
        count = len(gates) + len(late)
        message = (
            f"fold {count} {'gate' if count == 1 else 'gates'} into {what}\n\n" + "\n".join(lines) + "\n"
        )
        parents = [base, *(tip for _, tip in gates), *(one.tip for one in late)]
        return self.objects.write(
            COMMIT, dump_commit(tree, dict.fromkeys(parents), self.by.who, self.by.at, message)
        )

    def root(self, what: str) -> str:
        """The same for everybody: two who begin a month at once begin the same one."""
        empty = self.objects.write(TREE, b"")
        return self.objects.write(COMMIT, dump_commit(empty, (), ROOT_AUTHOR, 0, f"begin {what}\n"))

    def tree(self, base: str, gates: Sequence[tuple[str, str]], late: Sequence[Late]) -> str:
        top = self.entries(base)
        touched: dict[bytes, dict[bytes, TreeEntry]] = {}
        for gate, tip in gates:
            drawer = self.drawer(touched, top, gate)
            drawer[gate.encode()] = TreeEntry(FOLDER, gate.encode(), self.commit_tree(tip))
        for one in late:
            drawer = self.drawer(touched, top, one.id)
            if one.files and one.id.encode() in drawer:
                drawer[one.id.encode()] = self.with_late(drawer[one.id.encode()], one.files)
        for name, drawer in touched.items():
            top[name] = TreeEntry(FOLDER, name, self.write(drawer.values()))
        return self.write(top.values())

    def drawer(
        self, touched: dict[bytes, dict[bytes, TreeEntry]], top: Mapping[bytes, TreeEntry], gate: str
    ) -> dict[bytes, TreeEntry]:
        name = folder(gate).partition("/")[0].encode()
        if name not in touched:
            touched[name] = self.entries(top[name].oid) if name in top else {}
        return touched[name]

    def with_late(self, entry: TreeEntry, files: Mapping[str, str]) -> TreeEntry:
        inside = self.entries(entry.oid)
        name = LATE.encode()
        kept = self.entries(inside[name].oid) if name in inside else {}
        kept |= {file.encode(): TreeEntry(REGULAR, file.encode(), blob) for file, blob in files.items()}
        inside[name] = TreeEntry(FOLDER, name, self.write(kept.values()))
        return TreeEntry(FOLDER, entry.name, self.write(inside.values()))

    def commit_tree(self, commit: str) -> str:
        return parse_commit(self.objects.read(commit)[1]).tree

    def entries(self, tree: str) -> dict[bytes, TreeEntry]:
        return {entry.name: entry for entry in parse(self.objects.read(tree)[1], self.width)}

    def write(self, entries: Iterable[TreeEntry]) -> str:
        return self.objects.write(TREE, dump_tree(entries))
