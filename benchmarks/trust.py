"""Benchmarks: what proof costs. Verifying signed answers, against git's own verdict on the same commits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from . import scenes
from .measure import COMMAND, Row, ratio, run, side_by_side

ANSWERS = 1000
ANSWER = """
import os, pathlib, sys
from gitgate.questions import Given
from gitgate.acts.answering import Manner, respond
from gitgate.context import open_desk
from gitgate.gates.recording import reload
desk = open_desk(pathlib.Path('.'), dict(os.environ), bulk=True)
for gate in sys.stdin.read().split():
    print(respond(desk, reload(desk, gate), Given(text='Left'), Manner(sign=True, push=False)).gate.tip)
"""


def verify_signed(room: Path) -> list[Row]:
    """Both start ssh-keygen twice for each commit; ours also reads and folds each record, and says whose name it bears."""
    place = scenes.repository(room / "signed")
    key = room / "key"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(make, check=True, timeout=30)
    email = run(["git", "config", "user.email"], place).decode().strip()
    public = " ".join((room / "key.pub").read_text(encoding="utf-8").split()[:2])
    (room / "allowed").write_text(f"{email} {public}\n", encoding="utf-8")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingKey", f"{key}.pub"),
        ("gpg.ssh.allowedSignersFile", str(room / "allowed")),
    ):
        run(["git", "config", name, value], place)
    ids = scenes.with_gates(place, ANSWERS)
    tips = run([sys.executable, "-c", ANSWER], place, input="\n".join(ids).encode())
    ours, theirs = side_by_side(
        [
            lambda: run([COMMAND, "verify", "-q"], place),
            lambda: run(["git", "log", "--no-walk", "--stdin", "--format=%H %G?"], place, input=tips),
        ],
        3,
    )
    return [
        ratio(
            f"verify, {ANSWERS:,} signed answers",
            ours,
            theirs,
            1.3,
            "git log --format=%G? of the same commits",
        )
    ]
