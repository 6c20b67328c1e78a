"""Test bed: policies on a server's branch, and people with keys."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from support import PATIENCE
from support.testbed.repositories import Clone

SIGNERS = ".gitgate/allowed_signers"


def publish_policy(
    server: Clone, text: str | bytes, *, branch: str = "main", signers: str = "", at: float = 1_700_000_000
) -> str:
    """A commit on the server's branch that holds this policy, and perhaps allowed signers."""
    files = {".gitgate.yml": text, **({SIGNERS: signers} if signers else {})}
    head = f"commit refs/heads/{branch}\ncommitter A <a@example.org> {at:.0f} +0000\ndata 6\npolicy\n"
    stream = f"{head}from refs/heads/{branch}^0\n".encode()
    for name, said in files.items():
        body = said.encode() if isinstance(said, str) else said
        stream += b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(body), body)
    server.git("fast-import", "--quiet", "--force", input=stream)
    return server.git("rev-parse", branch)


@dataclass(frozen=True)
class Key:
    """Somebody's ssh key."""

    place: Path
    email: str

    @property
    def public(self) -> str:
        return " ".join(self.place.with_suffix(".pub").read_text(encoding="utf-8").split()[:2])

    @property
    def line(self) -> str:
        """Its line in an allowed-signers file."""
        return f'{self.email} namespaces="git" {self.public}\n'

    def used_by(self, clone: Clone) -> None:
        """From now on this clone signs with it."""
        clone.git("config", "gpg.format", "ssh")
        clone.git("config", "user.signingKey", str(self.place.with_suffix(".pub")))


def make_key(folder: Path, name: str, email: str) -> Key:
    folder.mkdir(exist_ok=True)
    place = folder / name
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(place)]
    subprocess.run(make, check=True, timeout=PATIENCE)
    return Key(place, email)
