"""What stays on the machine, by name; and what must not be mistaken for it."""

from __future__ import annotations

import os
import random
import socket
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.store.work import path_of, printable
from gitgate.store.work.snapshot import Snapshot, take
from store.hard_cases import AT, AUTHOR, fingerprint, reopen, snap, status
from support.testbed.repositories import Clone, make_clone, run_git

RANDOM = random.Random(11)  # noqa: S311  made-up tokens, put together here so that no file holds the shape of one


def made(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(RANDOM.choice(letters) for _ in range(length))


SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE " + "KEY-----\n" + made(64) + "\n",
    "openssh key": "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n" + made(64) + "\n",
    "aws": "key = AK" + "IA" + made(16, string.ascii_uppercase + "234567"),
    "github": "gh" + "p_" + made(36),
    "slack": "xo" + "xb-123456789012-1234567890123-" + made(24),
    "google": "AI" + "za" + made(35),
    "stripe": "sk_" + "live_" + made(24),
    "anthropic": "sk-" + "ant-api03-" + made(93),
    "openai": "sk-" + "proj-" + made(60),
    "jwt": "ey" + "J" + made(30) + ".ey" + "J" + made(60) + "." + made(43),
    "npm": "//registry/:_authToken=np" + "m_" + made(36),
}
SECRET_NAMES = (
    ".env",
    ".env.local",
    "deep/.env.production",
    "server.pem",
    "id_rsa",
    "id_rsa_work",
    "id_ed25519",
    "tls/private.key",
    ".netrc",
    "credentials",
    "credentials.json",
    "store.p12",
    ".npmrc",
    ".git-credentials",
)
HARMLESS_NAMES = (
    ".env.example",
    "id_rsa.pub",
    "keyboard.py",
    "environment.md",
    "monkey",
    "credentials.md",
    "pem.txt",
)


def files(clone: Clone, commit: str) -> set[str]:
    return {name for name in clone.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0") if name}


def left(snapshot: Snapshot) -> dict[str, str]:
    return {found.path: found.reason for found in snapshot.left_out}


def holds(clone: Clone, text: str) -> bool:
    """Whether any object of the repository holds a text, whatever its name."""
    names = clone.git(
        "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"
    ).splitlines()
    blobs = [name.split()[0] for name in names if name.endswith("blob")]
    return any(text in clone.git("cat-file", "blob", blob) for blob in blobs)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_file_with_the_name_of_a_secret_stays(repo: Clone, name: str) -> None:
    """It is named, and not even an object of it is written."""
    repo.write(name, "harmless looking\n")
    repo.write("work", "work\n")
    snapshot = snap(repo)
    assert set(left(snapshot)) == {name}
    assert files(repo, snapshot.work) == {"README", "work"}
    assert not holds(repo, "harmless looking")


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_a_file_that_merely_sounds_like_one_goes(repo: Clone, name: str) -> None:
    """Samples, public keys and words with a secret's letters in them are work."""
    repo.write(name, "text\n")
    assert name in files(repo, snap(repo).work)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_file_that_holds_a_secret_stays(repo: Clone, kind: str) -> None:
    """The reason names the kind and never the secret."""
    repo.write("notes.txt", f"first line\n{SECRETS[kind]}\n")
    snapshot = snap(repo)
    assert set(left(snapshot)) == {"notes.txt"}
    assert SECRETS[kind].strip()[-20:] not in left(snapshot)["notes.txt"]
    assert not snapshot.dirty
    assert not holds(repo, "first line")


def test_a_secret_in_a_windows_text_is_found(repo: Clone) -> None:
    """PowerShell writes UTF-16."""
    repo.write("notes.txt", ("\ufeff" + SECRETS["github"]).encode("utf-16-le"))
    assert set(left(snap(repo))) == {"notes.txt"}


def test_a_newly_staged_secret_stays_too(repo: Clone) -> None:
    """`git add -A` takes an .env as well: staged is not yet published. The agent's own index keeps it."""
    repo.write(".env", "A=1\n")
    repo.write("notes", SECRETS["github"])
    repo.write("intended", SECRETS["slack"])
    repo.write("work", "work\n")
    repo.git("add", ".env", "notes", "work")
    repo.git("add", "-N", "intended")
    before = fingerprint(repo)
    snapshot = snap(repo)
    assert fingerprint(repo) == before
    assert set(left(snapshot)) == {".env", "notes", "intended"}
    assert files(repo, snapshot.staged) == files(repo, snapshot.work) == {"README", "work"}
    assert snapshot.intent_to_add == ()


def test_a_secret_that_was_staged_and_then_edited_out_stays(repo: Clone) -> None:
    """The staged blob would be published, although the file no longer shows it."""
    repo.write("notes", SECRETS["github"])
    repo.git("add", "notes")
    repo.write("notes", "nothing here\n")
    snapshot = snap(repo)
    assert set(left(snapshot)) == {"notes"}
    assert files(repo, snapshot.work) == {"README"}


def test_what_history_knows_already_goes(repo: Clone) -> None:
    """A tracked file is no new secret, neither edited nor moved; nor is what a merge brings."""
    repo.write("old.pem", "sample certificate\n")
    repo.write("kept.pem", "sample\n")
    repo.commit()
    repo.git("mv", "old.pem", "new.pem")
    repo.write("kept.pem", "edited\n")
    snapshot = snap(repo)
    assert snapshot.left_out == ()
    assert files(repo, snapshot.work) == {"README", "new.pem", "kept.pem"}
    repo.commit()
    repo.git("checkout", "-q", "-b", "side")
    repo.commit(**{"from-side.pem": "theirs\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
    assert "from-side.pem" in files(repo, snap(repo).work)
    repo.write("mine.pem", "staged in the middle of the merge\n")
    repo.git("add", "mine.pem")
    assert set(left(snap(repo))) == {"mine.pem"}


def test_large_untracked_files_stay(repo: Clone) -> None:
    """Over the cap by one byte stays; the cap itself goes, and so does a tracked file of any size."""
    repo.commit(tracked="t\n")
    repo.write("tracked", b"t" * 3001)
    repo.write("fits", b"f" * 2000)
    repo.write("large", b"l" * 2001)
    snapshot = take(repo.repository, at=AT, author=AUTHOR, most_bytes=2000)
    assert set(left(snapshot)) == {"large"}
    assert files(repo, snapshot.work) == {"README", "tracked", "fits"}


def test_include_settles_it(repo: Clone) -> None:
    """A person who names a secret, a large or a staged file gets it; only what is named."""
    repo.write(".env", "A=1\n")
    repo.write("keys/a.pem", "pem\n")
    repo.write("other.pem", "pem\n")
    repo.write("large", b"l" * 2001)
    repo.git("add", "keys")
    included = (".env", "keys", "large")
    snapshot = take(repo.repository, at=AT, author=AUTHOR, most_bytes=2000, include=included)
    assert set(left(snapshot)) == {"other.pem"}
    assert files(repo, snapshot.work) == {"README", ".env", "keys/a.pem", "large"}


def test_a_link_with_the_name_of_a_secret_goes(repo: Clone) -> None:
    """It carries where it points to, and nothing of what is there."""
    (repo.path / ".env").symlink_to("/etc/hosts")
    snapshot = snap(repo)
    assert snapshot.left_out == ()
    assert repo.git("cat-file", "-p", f"{snapshot.work}:.env") == "/etc/hosts"


def test_gates_own_paths_stay(repo: Clone) -> None:
    """`.hitl`, tracked or not, staged or not; what history has of it stays as history has it."""
    repo.write(".hitl/tracked", "v1\n")
    repo.write(".hitl/staged", "v1\n")
    repo.write(".hitl/dropped", "v1\n")
    repo.write("sub/.hitl/mine", "v1\n")
    base = repo.commit()
    repo.write(".hitl/tracked", "v2\n")
    repo.write(".hitl/staged", "v2\n")
    repo.write(".hitl/planted", "new\n")
    repo.git("add", ".hitl/staged", ".hitl/planted")
    repo.git("rm", "-q", ".hitl/dropped")
    repo.write(".hitl/untracked", "new\n")
    before = fingerprint(repo)
    snapshot = snap(repo)
    assert fingerprint(repo) == before
    assert set(left(snapshot)) == {
        f".hitl/{n}" for n in ("tracked", "staged", "dropped", "planted", "untracked")
    }
    assert not snapshot.dirty
    repo.write("sub/.hitl/mine", "v2\n")
    repo.write("work", "w\n")
    for commit in (snap(repo).staged, snap(repo, include=(".hitl",)).work):
        assert repo.git("rev-parse", f"{commit}:.hitl") == repo.git("rev-parse", f"{base}:.hitl")
    assert repo.git("cat-file", "-p", f"{snap(repo).work}:sub/.hitl/mine") == "v2"


def test_repositories_within_stay(repo: Clone) -> None:
    """With commits, without (`git add` dies on one), and a linked working tree: named, and the rest goes."""
    make_clone(repo.path / "with-commits")
    run_git("init", "-q", "without", cwd=repo.path)
    (repo.path / "deep").mkdir()
    run_git("init", "-q", "deep/within", cwd=repo.path)
    repo.git("worktree", "add", "-q", "linked", "-b", "side")
    repo.write("work", "w\n")
    snapshot = snap(repo, include=("with-commits",))
    assert set(left(snapshot)) == {"with-commits/", "without/", "deep/within/", "linked/"}
    assert files(repo, snapshot.work) == {"README", "work"}


def test_a_file_that_became_a_repository(repo: Clone, tmp_path: Path) -> None:
    """The file is gone; the repository in its place stays."""
    repo.commit(place="p\n")
    (repo.path / "place").unlink()
    make_clone(repo.path / "place")
    snapshot = snap(repo)
    assert set(left(snapshot)) == {"place/"}
    assert files(repo, snapshot.work) == {"README"}


def test_what_is_no_file_stays(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe in a file's place (`git add -A` dies on it) leaves the file as it was; reading it would wait for ever."""
    repo.commit(pipe="was a file\n", listener="was a file\n")
    for name in ("pipe", "listener"):
        (repo.path / name).unlink()
    os.mkfifo(repo.path / "pipe")
    os.mkfifo(repo.path / "new-pipe")
    monkeypatch.chdir(repo.path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("listener")
        repo.write("work", "w\n")
        snapshot = snap(repo, include=("new-pipe",))
    assert set(left(snapshot)) == {"pipe", "listener", "new-pipe"}
    assert repo.git("cat-file", "-p", f"{snapshot.work}:pipe") == "was a file"


@pytest.fixture
def superproject(repo: Clone, bare: Clone) -> Clone:
    """A repository with a submodule at `sub`, checked out."""
    repo.git("submodule", "add", "-q", str(bare.path), "sub")
    repo.commit("a submodule")
    return repo


def test_changes_inside_a_submodule_stay(superproject: Clone) -> None:
    """Edited or untracked inside: named, and alone they make nothing dirty."""
    superproject.write("sub/README", "edited\n")
    superproject.write("sub/new", "new\n")
    snapshot = snap(superproject)
    assert set(left(snapshot)) == {"sub"}
    assert not snapshot.dirty


@pytest.mark.parametrize("ignore", ["none", "all"])
def test_a_submodule_that_moved_is_named_by_its_commit(
    superproject: Clone, ignore: str, tmp_path: Path
) -> None:
    """`ignore = all` in the work's own .gitmodules hides nothing from a snapshot."""
    superproject.git("config", "submodule.sub.ignore", ignore)
    moved = Clone(superproject.path / "sub").commit("on")
    snapshot = snap(superproject)
    assert superproject.git("rev-parse", f"{snapshot.work}:sub") == moved
    assert set(left(snapshot)) == {"sub"}
    place = reopen(superproject, snapshot, tmp_path / "again")
    assert any("submodule update" in note for note in place.notes)


def test_a_submodule_that_is_new_or_gone(superproject: Clone, bare: Clone, tmp_path: Path) -> None:
    """Staged like any file, and restored so."""
    superproject.git("submodule", "add", "-q", str(bare.path), "second")
    superproject.git("rm", "-q", "sub")
    snapshot = snap(superproject)
    assert snapshot.left_out == ()
    place = reopen(superproject, snapshot, tmp_path / "again")
    assert status(place.directory) == status(superproject.path)


def test_a_submodule_that_became_a_file(superproject: Clone) -> None:
    """A type change of the rare kind."""
    import shutil

    shutil.rmtree(superproject.path / "sub")
    superproject.write("sub", "a file\n")
    assert superproject.git("cat-file", "-p", f"{snap(superproject).work}:sub") == "a file"


def test_names_are_told_in_printable_letters(repo: Clone) -> None:
    """A name with an escape sequence must not reach a terminal or a document as it is."""
    repo.write("evil\x1b[31m\n\u202e.pem", "x")
    repo.write(os.fsdecode(b"\xff.pem"), "x")
    repo.write("sch\u00f6n.pem", "x")
    assert set(left(snap(repo))) == {
        r'"evil\033[31m\n\342\200\256.pem"',
        r'"\377.pem"',
        "sch\u00f6n.pem",
    }


@given(st.binary(min_size=1).filter(lambda raw: b"\0" not in raw))
def test_a_printable_path_leads_back(path: bytes) -> None:
    """Whatever the bytes: shown in one printable line, and read back."""
    assert printable(path).isprintable()
    assert path_of(printable(path)) == path


def test_left_out_files_do_not_disturb_the_way_back(
    repo: Clone, tmp_path: Path, clone_of: Callable[..., Clone]
) -> None:
    """The rest comes back as it was."""
    repo.write(".env", "A=1\n")
    repo.write("work", "w\n")
    repo.git("add", ".env")
    place = reopen(repo, snap(repo), tmp_path / "again")
    assert [line for line in status(repo.path) if not line.endswith(b".env")] == status(place.directory)


def test_a_password_beside_its_name_stays(repo: Clone) -> None:
    """Untracked or newly staged, held back and named; what only reads one goes."""
    repo.write("notes.txt", "password = correcthorse\n")
    repo.write("staged.ini", "api_key: a1b2c3d4e5\n")
    repo.write("edited.py", 'PASSWORD = "hunter2"\n')
    repo.write("reads.py", "password = os.environ['DB_PASSWORD']\n")
    repo.git("add", "staged.ini", "edited.py")
    repo.write("edited.py", "PASSWORD = read()\n")
    snapshot = snap(repo)
    reasons = left(snapshot)
    assert set(reasons) == {"notes.txt", "staged.ini", "edited.py"}
    assert reasons["notes.txt"] == "it seems to hold a secret (a value named password)"
    assert files(repo, snapshot.work) == {"README", "reads.py"}
    assert not holds(repo, "correcthorse")
    assert "notes.txt" in files(repo, snap(repo, include=("notes.txt",)).work)


@pytest.mark.parametrize("staged", [False, True])
def test_a_password_far_down_stays(repo: Clone, staged: bool) -> None:
    """A file is read to its end, whatever stands before; so is one that was staged so and edited since."""
    long = "some line of text here\n" * 50_000
    repo.write("notes.txt", f"{long}password = kd93jfKD\n")
    if staged:
        repo.git("add", "notes.txt")
        repo.write("notes.txt", "nothing\n")
    snapshot = snap(repo)
    assert left(snapshot) == {"notes.txt": "it seems to hold a secret (a value named password)"}
    assert files(repo, snapshot.work) == {"README"}
    assert staged or not holds(repo, "kd93jfKD")


@pytest.mark.parametrize(
    "line",
    [
        "passphrase = correcthorse2",
        "<password>hunter22</password>",
        '<db:password enc="no">hunter22</db:password>',
        "<proxyPassword> hunter22 </proxyPassword>",
    ],
)
def test_other_ways_to_write_a_password(repo: Clone, line: str) -> None:
    """In a file that nobody names after secrets."""
    repo.write("settings.txt", f"one\n{line}\n")
    assert list(left(snap(repo))) == ["settings.txt"]


@pytest.mark.parametrize(
    "line",
    [
        "<password></password>",
        "<password>${env.DB}</password>",
        "<password-policy>strict</password-policy>",
        "a passphrase: see below",
    ],
)
def test_words_about_a_password_go(repo: Clone, line: str) -> None:
    """None is written there, or only where it comes from."""
    repo.write("settings.txt", f"one\n{line}\n")
    assert left(snap(repo)) == {}


def test_rules_of_others_stand_beside_their_licence() -> None:
    """The data says whose it is and what was changed; the licence and the notice go wherever it goes."""
    from gitgate.store import work

    rules = Path(work.__file__).parent / "rules"
    told = (rules / "detect-secrets.txt").read_text(encoding="utf-8")
    assert "Apache" in told
    assert "Version 2.0" in (rules / "LICENSE.detect-secrets").read_text(encoding="utf-8")
    notice = Path(__file__).parents[2] / "NOTICE"
    assert "gitgate/store/work/rules/detect-secrets.txt" in notice.read_text(encoding="utf-8")
