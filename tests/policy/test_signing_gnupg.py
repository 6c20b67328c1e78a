"""Signed answers with OpenPGP and X.509 keys: a real GnuPG, in a home of its own. What is not surely good never reads as good."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitgate.audit.auditing import audit
from gitgate.errors import NotAllowed
from gitgate.model.gate import Gate
from gitgate.policy.permit import check_told
from gitgate.policy.ruling import marks
from gitgate.store.git.signatures import GOOD, UNKNOWN, judged
from support import PATIENCE
from support.deciding import gate_of, say
from support.resuming import Seat, until
from support.signing import make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = pytest.mark.slow
CERTIFICATE = """Key-Type: RSA
Key-Length: 2048
Key-Usage: sign
Serial: random
Name-DN: CN=Ada Lovelace
Name-Email: ada@example.org
Not-After: 2099-01-01
"""


@dataclass(frozen=True)
class Keyring:
    """GnuPG's home. Its path is short: a socket's has to be."""

    home: Path

    def gpg(self, *args: str, program: str = "gpg", input: str = "") -> str:
        loopback = ("--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", "")
        quiet = ("--quiet", "--no-tty") if program == "gpg" else ()
        done = subprocess.run(
            [program, *(loopback if program == "gpg" else loopback[:4]), *quiet, *args],
            input=input,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self, name: str, *, expires: str = "0", at: str = "") -> str:
        """A key for signing; its fingerprint."""
        faked = ("--faked-system-time", at) if at else ()
        self.gpg(
            *faked, "--quick-generate-key", f"{name} <{name.lower()}@example.org>", "ed25519", "sign", expires
        )
        return self.newest("gpg", f"{name.lower()}@example.org")

    def newest(self, program: str, name: str) -> str:
        listed = self.gpg("--list-keys", "--with-colons", name, program=program)
        return [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:")][-1]

    def certificate(self) -> str:
        """A certificate signed by itself, which this machine trusts."""
        made = self.home / "ada.der"
        self.gpg(
            "--passphrase-fd",
            "0",
            "--gen-key",
            "--output",
            str(made),
            program="gpgsm",
            input="\n" + CERTIFICATE,
        )
        self.gpg("--import", str(made), program="gpgsm")
        print_ = self.newest("gpgsm", "Lovelace")
        (self.home / "trustlist.txt").write_text(f"{print_} S relax\n")
        self.restart()
        return print_

    def restart(self) -> None:
        """End the agents of this home, and of no other."""
        subprocess.run(["gpgconf", "--kill", "all"], capture_output=True, timeout=PATIENCE)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keyring]:
    home = Path(tempfile.mkdtemp(prefix="gg-", dir="/tmp"))
    monkeypatch.setenv("GNUPGHOME", str(home))
    (home / "gpg-agent.conf").write_text("allow-loopback-pinentry\n")
    (home / "gpgsm.conf").write_text("disable-crl-checks\n")
    ring = Keyring(home)
    yield ring
    ring.restart()
    shutil.rmtree(home, ignore_errors=True)


def sign_with(seat: Seat, key: str, form: str = "openpgp") -> None:
    seat.clone.git("config", "gpg.format", form)
    seat.clone.git("config", "user.signingKey", key)


def policy(seat: Seat, server: Clone, *keys: str, who: str = "ada@example.org") -> None:
    """These are Ada's keys, and only she answers, signed."""
    listed = ", ".join(f'"{key}"' for key in keys)
    publish_policy(
        server,
        f"policy:\n  people: {{ada: {{email: {who}, key: [{listed}]}}}}\n  who: ada\n  require_signed: true\n",
    )
    seat.clone.git("fetch", "-q", "origin")


def word(seat: Seat, gate: Gate) -> str:
    """What is shown of the answer, by both commands that show it."""
    mark = marks(seat.desk, [gate])[gate.tip].word
    assert f"({mark}" in Command().quick("show", gate.id, cwd=seat.clone.path, code=0).out
    listed = Command().quick("list", "--all", "--json", cwd=seat.clone.path, code=0).json["gates"]
    (found,) = [item for item in listed if item["id"] == gate.id]
    assert found["answer"]["signature"]["verdict"] == mark
    return mark


def test_openpgp_is_verified(ann: Seat, bare: Clone, keyring: Keyring) -> None:
    """By the policy's own list, whether this machine's keyring trusts the key or not."""
    ada = keyring.make("Ada")
    policy(ann, bare, ada)
    sign_with(ann, ada)
    gate = say(ann, gate_of(ann)).gate
    assert word(ann, gate) == "verified"
    keyring.gpg("--import-ownertrust", input=f"{ada}:2:\n")
    assert word(ann, gate) == "verified"
    assert (audit(ann.desk).problems, audit(ann.desk).signatures) == ((), {"good": 1})


def test_x509_is_verified(ann: Seat, bare: Clone, keyring: Keyring) -> None:
    """The same with a certificate; where it is no longer trusted here, the list still vouches for the key."""
    ada = keyring.certificate()
    policy(ann, bare, ada)
    sign_with(ann, ada, "x509")
    gate = say(ann, gate_of(ann)).gate
    assert word(ann, gate) == "verified"
    assert marks(ann.desk, [gate])[gate.tip].by == "ada@example.org"


def test_x509_without_a_list(alone: Seat, keyring: Keyring) -> None:
    """Git's own verdict: a certificate names nobody's address, so that it proves no name; untrusted it is nothing."""
    ada = keyring.certificate()
    sign_with(alone, ada, "x509")
    gate = say(alone, gate_of(alone), sign=True).gate
    assert audit(alone.desk).signatures == {"good": 1}
    assert word(alone, gate) == "unverified"
    (keyring.home / "trustlist.txt").write_text(f"!{ada} S relax\n")
    keyring.restart()
    assert audit(alone.desk).signatures == {"unknown": 1}


def test_a_key_that_nobody_lists(ann: Seat, bare: Clone, keyring: Keyring) -> None:
    """An agent may make one in Ada's name and trust it on this machine: the protected branch does not name it."""
    ada = keyring.make("Ada")
    policy(ann, bare, ada)
    keyring.gpg("--quick-generate-key", "Ada <ada@example.org> (2)", "ed25519", "sign", "0")
    other = keyring.newest("gpg", "(2)")
    assert other != ada
    sign_with(ann, other)
    gate = gate_of(ann)
    with pytest.raises(NotAllowed, match=f"signed by a key that is known; the signature by {other} is not"):
        say(ann, gate)
    publish_policy(bare, f"policy: {{people: {{ada: {{email: ada@example.org, key: {ada}}}}}}}\n")
    ann.clone.git("fetch", "-q", "origin")
    unknown = say(ann, gate, sign=True).gate
    assert word(ann, unknown) == "unverified"


def test_allowed_ssh_signers_leave_no_room_for_a_keyring(
    ann: Seat, bare: Clone, keyring: Keyring, tmp_path: Path
) -> None:
    """Where the protected branch names keys, a key of another kind counts when it is named too."""
    ssh = make_key(tmp_path / "keys", "ada", "ada@example.org")
    publish_policy(bare, "policy: {require_signed: true}\n", signers=ssh.line)
    ann.clone.git("fetch", "-q", "origin")
    sign_with(ann, keyring.make("Ada"))
    with pytest.raises(NotAllowed, match="is not"):
        say(ann, gate_of(ann))


def test_a_name_on_a_key_is_anybodys(ann: Seat, bare: Clone, keyring: Keyring) -> None:
    """Ada's listed key calls itself Bob's: what it signs is still Ada's, and nothing of Bob's."""
    bob = keyring.make("Bob")
    publish_policy(
        bare,
        f"policy:\n  people: {{ada: {{email: ada@example.org, key: {bob}}}, bob: {{email: bob@example.org}}}}\n"
        "  who: [ada, bob]\n  require_signed: true\n",
    )
    ann.clone.git("fetch", "-q", "origin")
    sign_with(ann, bob)
    ann.clone.git("config", "user.email", "bob@example.org")
    with pytest.raises(NotAllowed, match=r"signed by ada@example\.org, but in the name of"):
        say(ann, gate_of(ann))
    ann.clone.git("config", "user.email", "ada@example.org")
    assert word(ann, say(ann, gate_of(ann)).gate) == "verified"


def test_an_expired_key(ann: Seat, bare: Clone, keyring: Keyring) -> None:
    """Good once; not any more, and never taken for good."""
    ada = keyring.make("Ada")
    policy(ann, bare, ada)
    sign_with(ann, ada)
    gate = say(ann, gate_of(ann)).gate
    keyring.gpg("--quick-set-expire", ada, "seconds=1")
    keyring.gpg("--faked-system-time", "20400101T000000", "--list-keys")
    assert wait_until_expired(ann, gate) == "unverified"
    assert audit(ann.desk).signatures == {"unknown": 1}


def wait_until_expired(seat: Seat, gate: Gate) -> str:
    """A second and a bit: expiry is in whole ones."""
    until(lambda: marks(seat.desk, [gate])[gate.tip].word != "verified")
    return word(seat, gate)


def test_a_revoked_key(ann: Seat, bare: Clone, keyring: Keyring) -> None:
    """Bad, whenever it was used: shown as invalid, a problem for `verify`, and acted on by nobody."""
    ada = keyring.make("Ada")
    policy(ann, bare, ada)
    sign_with(ann, ada)
    gate = say(ann, gate_of(ann)).gate
    certificate = keyring.home / "openpgp-revocs.d" / f"{ada}.rev"
    keyring.gpg("--import", input=certificate.read_text().replace("\n:-----BEGIN", "\n-----BEGIN"))
    assert word(ann, gate) == "invalid"
    assert {problem.kind for problem in audit(ann.desk).problems} >= {"signature"}
    with pytest.raises(NotAllowed, match="its signature is bad"):
        check_told(ann.desk, gate)


def test_a_key_that_is_not_here(ann: Seat, bare: Clone, keyring: Keyring) -> None:
    """It cannot be checked: that is not good, listed or not."""
    ada = keyring.make("Ada")
    policy(ann, bare, ada)
    sign_with(ann, ada)
    gate = say(ann, gate_of(ann)).gate
    keyring.gpg("--delete-secret-keys", ada)
    keyring.gpg("--delete-keys", ada)
    assert word(ann, gate) == "unverified"


def test_a_subkey_is_its_owners(ann: Seat, bare: Clone, keyring: Keyring) -> None:
    """The primary key's fingerprint is the one that is listed."""
    ada = keyring.make("Ada")
    keyring.gpg("--quick-add-key", ada, "ed25519", "sign", "0")
    policy(ann, bare, ada)
    sign_with(ann, "ada@example.org")
    gate = say(ann, gate_of(ann)).gate
    assert word(ann, gate) == "verified"
    assert marks(ann.desk, [gate])[gate.tip].key == ada


def test_what_gits_letters_mean_where_keys_are_listed() -> None:
    """Only good ones by a listed key are good, trusted by the machine or not."""
    key = "A" * 40
    assert [judged(letter, "x", key, {key: "ada@example.org"}).word == GOOD for letter in "GUXYENRB"] == [
        *(True, True),
        *[False] * 6,
    ]
    assert judged("G", "Ada <ada@example.org>", key, {}).word == UNKNOWN
    assert judged("U", "Ada <ada@example.org>", key).word == UNKNOWN
