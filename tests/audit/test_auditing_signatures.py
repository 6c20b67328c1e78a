"""Verify: signatures are good, bad or unknown, and a good one of somebody else proves nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gitgate.audit import Verified
from gitgate.audit.auditing import audit
from gitgate.model.gate import Gate, Remark
from gitgate.store.git.refs import OPEN
from gitgate.store.records import Signature
from support.deciding import gate_of, say
from support.histories import EVE
from support.resuming import Seat

BY = Signature("Mallory <mallory@example.org>", 1_800_000_000)


def point(seat: Seat, gate: Gate, tip: str) -> None:
    seat.clone.git("update-ref", OPEN + gate.id, tip)


@pytest.fixture
def keys(home: Path) -> Callable[[str], str]:
    """Signing keys, made as they are asked for."""

    def make(name: str) -> str:
        path = home / f"key-{name}"
        if not path.exists():
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True
            )
        return str(path)

    return make


def sign_as(seat: Seat, key: str) -> None:
    seat.clone.git("config", "gpg.format", "ssh")
    seat.clone.git("config", "user.signingKey", key)


def allow(seat: Seat, home: Path, **signers: str) -> None:
    """Whose keys are vouched for: address to key."""
    allowed = home / "allowed"
    allowed.write_text(
        "".join(f"{who}@example.org {Path(key + '.pub').read_text()}" for who, key in signers.items())
    )
    seat.clone.git("config", "gpg.ssh.allowedSignersFile", str(allowed))


def signed(seat: Seat) -> Verified:
    done = audit(seat.desk)
    assert [problem.kind for problem in done.problems] in ([], ["signature"])
    return done


@pytest.mark.needs("ssh-keygen")
def test_signatures_are_good_bad_or_unknown(alone: Seat, home: Path, keys: Callable[[str], str]) -> None:
    """An unknown key never reads as good."""
    gate = gate_of(alone)
    sign_as(alone, keys("ada"))
    say(alone, gate, sign=True)
    done = signed(alone)
    assert (done.signatures, done.problems) == ({"unknown": 1}, ())
    allow(alone, home, bob=keys("bob"))
    assert signed(alone).signatures == {"unknown": 1}
    allow(alone, home, ada=keys("ada"))
    assert signed(alone).signatures == {"good": 1}
    tip = alone.now(gate).tip
    raw = alone.desk.records.objects.read(tip)[1]
    forged_tip = alone.desk.records.objects.write("commit", raw.replace(b"Ada Lovelace", b"Eve Lovelace", 1))
    point(alone, gate, forged_tip)
    done = signed(alone)
    assert done.signatures == {"bad": 1}
    assert [(p.commit, p.words) for p in done.problems] == [(forged_tip, "its signature is bad")]


@pytest.mark.needs("ssh-keygen")
def test_a_good_signature_of_somebody_else(alone: Seat, home: Path, keys: Callable[[str], str]) -> None:
    """Eve's own key is good, and no proof that Ada said it."""
    gate = gate_of(alone)
    sign_as(alone, keys("eve"))
    allow(alone, home, eve=keys("eve"), ada=keys("ada"))
    say(alone, gate, sign=True)
    done = signed(alone)
    assert "signed by eve@example.org, but in the name of Ada" in done.problems[0].words


@pytest.mark.needs("ssh-keygen")
def test_an_answer_recorded_again_is_signed_by_its_author(
    alone: Seat, home: Path, keys: Callable[[str], str]
) -> None:
    """On the original; whoever recorded it again may sign that as well."""
    gate = gate_of(alone)
    sign_as(alone, keys("ada"))
    allow(alone, home, ada=keys("ada"), bob=keys("bob"))
    own = say(alone, gate, sign=True).gate
    desk = alone.desk
    moved = desk.records.write_event(gate, "commented", Remark("2030-01-01T00:00:00Z", EVE, "hm"), BY)
    sign_as(alone, keys("bob"))
    again = desk.records.repeat(moved, own.history[-1], replace(BY, sign=True), own.tip)
    point(alone, gate, again.tip)
    done = signed(alone)
    assert (done.signatures, done.problems) == ({"good": 2}, ())
    assert {verdict.signer for verdict in done.verdicts.values()} == {"ada@example.org", "bob@example.org"}
