"""Export: one file that somebody checks by plain git and sha256sum, the same wherever it is made; and what is never in it."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

import gitgate
from gitgate.audit import bundle
from gitgate.store.git.refs import OPEN
from support.resuming import Agent, Clock, Seat, scripted_agent
from support.signing import make_key, publish_policy
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone, run_git

__all__ = ["scripted_agent"]

FLOW = """import gitgate

@gitgate.flow
def release(version):
    return gitgate.ask("Deploy?", type="approval", wait=True).answer
"""


def unpacked(file: Path, into: Path) -> Path:
    with tarfile.open(file) as whole:
        whole.extractall(into, filter="data")
    return into / "gates"


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text("utf-8"))


def shell(line: str, cwd: Path) -> str:
    done = subprocess.run(["sh", "-ec", line], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def three(cli: Command, repo: Clone, agent: Agent) -> tuple[str, str, str]:
    """An archived gate that an agent acted on, one that is answered, one that waits."""
    agent.does("git commit -q --allow-empty -m done")
    done = cli.quick("ask", "Which database?", "--agent", "scripted", cwd=repo.path, code=0).line
    cli.quick("respond", done, "Postgres", cwd=repo.path, code=0)
    cli.quick("resume", done, cwd=repo.path, code=0)
    cli.quick("archive", "--older-than", "0s", cwd=repo.path, code=0)
    said = cli.quick("ask", "Deploy?", "--type", "approval", cwd=repo.path, code=0).line
    cli.quick("respond", said, "--approve", "--note", "after 18:00", cwd=repo.path, code=0)
    waits = cli.quick("ask", "Which port?", "--timeout", "2h", cwd=repo.path, code=0).line
    return done, said, waits


def test_it_is_checked_without_this_program(repo: Clone, agent: Agent, cli: Command, tmp_path: Path) -> None:
    """Word for word as its own README says; what git finds is what the clone has."""
    done, said, waits = three(cli, repo, agent)
    told = cli.quick("export", cwd=repo.path, code=0)
    digest = hashlib.sha256((repo.path / "gates.tar.gz").read_bytes()).hexdigest()
    assert told.line == f"{digest}  gates.tar.gz"
    assert "3 gates" in told.err
    assert "left out: sessions, work, commits, leases" in told.err
    folder = unpacked(repo.path / "gates.tar.gz", tmp_path)
    readme = (folder / "README.txt").read_text("utf-8")
    lines = [line.strip() for line in readme.splitlines() if line.startswith(("  sha256sum", "  git "))]
    assert len(lines) == 6
    for line in lines[:5]:
        shell(line, folder)
    checked = Clone(folder / "gates.git")
    assert checked.refs("refs/hitl/open") == repo.refs("refs/hitl/open")
    assert checked.refs("refs/hitl/archive") == repo.refs("refs/hitl/archive")
    gates = {one["id"]: one for one in read(folder, "gates.json")["gates"]}
    assert {name: one["state"] for name, one in gates.items()} == {
        done: "resumed",
        said: "answered",
        waits: "awaiting",
    }
    assert gates[done]["archived"]
    assert checked.refs("refs/hitl/archived") == {f"refs/hitl/archived/{done}": gates[done]["tip"]}
    assert "Which database?" in checked.git("log", "-p", f"refs/hitl/archived/{done}")
    for gate, shape in gates.items():
        shown = cli.quick("show", gate, "--json", cwd=repo.path, code=0).json
        assert shape["session"]["id"] is None
        ours = {"pushed", "session", "work"}
        assert {k: v for k, v in shape.items() if k not in ours} == {
            k: v for k, v in shown.items() if k not in ours
        }
    letter = (folder / "letters" / f"{said}.txt").read_text("utf-8")
    assert "after 18:00" in letter
    assert "ago" not in letter + (folder / "letters" / f"{waits}.txt").read_text("utf-8")
    assert "due 20" in (folder / "letters" / f"{waits}.txt").read_text("utf-8")
    verified = read(folder, "verify.json")
    assert (verified["schema"], verified["ok"], verified["gates"]) == ("gitgate.verify/v1", True, 3)


@pytest.mark.slow
def test_the_same_refs_give_the_same_bytes(repo: Clone, agent: Agent, cli: Command, tmp_path: Path) -> None:
    """However git keeps them, in another clone, and later."""
    three(cli, repo, agent)
    first = cli.quick("export", "-o", str(tmp_path / "1"), cwd=repo.path, code=0).out.split()[0]
    repo.git("config", "core.compression", "0")
    repo.git("repack", "-adfq", "--depth=50", "--window=50")
    second = cli.quick("export", "-o", str(tmp_path / "2"), cwd=repo.path, code=0).out.split()[0]
    run_git("clone", "-q", "--mirror", str(repo.path), str(tmp_path / "bare.git"), cwd=tmp_path)
    third = cli.quick("export", "-o", str(tmp_path / "3"), cwd=tmp_path / "bare.git", code=0).out.split()[0]
    assert first == second == third


def test_what_is_private_is_never_in_it(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """A saved session, and the work with its files, are in the clone, and in no file of the bundle."""
    repo.write("secret.txt", "partial-work-of-mine")
    gate = cli.quick("ask", "Which?", cwd=repo.path, code=0).line
    blob = repo.git("hash-object", "-w", "--stdin", input="what the agent said to itself")
    tree = repo.git("mktree", input=f"100644 blob {blob}\tsession\n")
    session = repo.git("commit-tree", tree, "-m", "session")
    repo.git("update-ref", f"refs/hitl/sessions/{gate}", session)
    shape = cli.quick("export", "--json", "-o", "../e.tar.gz", cwd=repo.path, code=0).json
    assert list(shape["left_out"]) == ["sessions", "work", "commits", "leases"]
    folder = unpacked(tmp_path / "e.tar.gz", tmp_path / "out")
    run_git("clone", "-q", "--mirror", "gates.bundle", "g.git", cwd=folder)
    there = set(Clone(folder / "g.git").git("cat-file", "--batch-all-objects", "--batch-check").split())
    assert not {blob, session, repo.refs("refs/hitl/work")[f"refs/hitl/work/{gate}"]} & there
    for file in folder.rglob("*"):
        if file.is_file():
            assert b"what the agent said" not in file.read_bytes()
            assert b"partial-work-of-mine" not in file.read_bytes()


@pytest.mark.slow
def test_only_those_that_are_named(repo: Clone, agent: Agent, cli: Command, tmp_path: Path) -> None:
    """By a beginning of the id; an archived one without the others of its month."""
    done, said, _ = three(cli, repo, agent)
    shape = cli.quick("export", done[:6], said[:6], "--json", "-o", "../e.tar.gz", cwd=repo.path, code=0).json
    assert (shape["schema"], shape["file"], shape["gates"], shape["runs"], shape["ok"]) == (
        "gitgate.export/v1",
        "../e.tar.gz",
        2,
        0,
        True,
    )
    assert set(shape["tips"]) == {done, said}
    folder = unpacked(tmp_path / "e.tar.gz", tmp_path / "out")
    heads = run_git("bundle", "list-heads", "gates.bundle", cwd=folder).decode().split()[1::2]
    assert heads == [f"refs/hitl/archived/{done}", f"refs/hitl/open/{said}"]
    assert read(folder, "verify.json")["gates"] == 2


@pytest.mark.slow
def test_a_run_brings_the_gates_that_it_asked(repo: Clone, cli: Command, tmp_path: Path) -> None:
    repo.write("flows.py", FLOW)
    other = cli.quick("ask", "Which port?", cwd=repo.path, code=0).line
    run = cli("run", "flows.py:release", "1.4", "--json", cwd=repo.path, code=8).json["id"]
    shape = cli.quick("export", run, "--json", "-o", "../e.tar.gz", cwd=repo.path, code=0).json
    assert (shape["gates"], shape["runs"]) == (1, 1)
    assert other not in shape["tips"]
    folder = unpacked(tmp_path / "e.tar.gz", tmp_path / "out")
    (one,) = read(folder, "runs.json")["runs"]
    shown = cli.quick("show", run, "--json", cwd=repo.path, code=0).json
    assert {name: one[name] for name in shown} == shown
    all_of_it = cli.quick("export", "--json", "-o", "../all", cwd=repo.path, code=0).json
    assert (all_of_it["gates"], all_of_it["runs"]) == (2, 1)


def test_since_a_moment(alone: Seat, clock: Clock, tmp_path: Path) -> None:
    old = alone.ask("Old?", push=False, work=False)
    clock.pass_by(100)
    new = alone.ask("New?", push=False, work=False)
    wanted = bundle.ExportWishes(since=clock() - 50)
    done = bundle.export_gates(alone.desk, wanted, tmp_path / "e")
    assert set(done.tips) == {new.id}
    assert old.id not in done.tips
    later = bundle.ExportWishes(since=clock() + 50)
    assert bundle.export_gates(alone.desk, later, tmp_path / "f").file is None
    assert not (tmp_path / "f").exists()


def test_where_there_is_nothing_no_file_is_made(repo: Clone, cli: Command) -> None:
    said = cli.quick("export", cwd=repo.path, code=0)
    assert (said.out, "nothing was written" in said.err) == ("", True)
    shape = cli.quick("export", "--json", cwd=repo.path, code=0).json
    assert (shape["file"], shape["gates"], shape["tips"]) == (None, 0, {})
    assert not (repo.path / "gates.tar.gz").exists()


def test_a_clone_that_never_synced_says_so(bare: Clone, repo: Clone, cli: Command) -> None:
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("fetch", "-q", "origin")
    said = cli.quick("export", cwd=repo.path, code=0)
    assert "never synced with origin" in said.err


def test_nobody_elses_file_is_written_over(repo: Clone, cli: Command) -> None:
    """Unless that is wanted; a directory never, nor what is no file."""
    cli.quick("ask", "Which?", cwd=repo.path, code=0)
    file = repo.write("mine", "mine")
    said = cli.quick("export", "-o", "mine", cwd=repo.path, code=1)
    assert "is there already" in said.err
    assert "--force" in said.err
    assert file.read_text() == "mine"
    cli.quick("export", "-o", "mine", "--force", cwd=repo.path, code=0)
    assert tarfile.is_tarfile(file)
    (repo.path / "folder").mkdir()
    assert "folder/gates.tar.gz" in cli.quick("export", "-o", "folder", cwd=repo.path, code=2).err
    assert "mkdir -p" in cli.quick("export", "-o", "nowhere/x", cwd=repo.path, code=1).err
    os.mkfifo(repo.path / "pipe")
    cli.quick("export", "-o", "pipe", "--force", cwd=repo.path, code=1)
    assert cli.quick("export", "-o", "-", cwd=repo.path, code=2).err
    assert sorted(path.name for path in repo.path.glob(".gates*")) == []


def test_a_name_that_is_taken_meanwhile_is_left(
    repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file system knows no links."""
    cli.quick("ask", "Which?", cwd=repo.path, code=0)
    monkeypatch.setattr(bundle, "check_place", lambda *_args, **_force: None)
    file = repo.write("mine", "mine")
    assert "is there already" in cli.quick("export", "-o", "mine", cwd=repo.path, code=1).err

    def no_links(*_names: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert "is there already" in cli.quick("export", "-o", "mine", cwd=repo.path, code=1).err
    assert file.read_text() == "mine"
    cli.quick("export", "-o", "new", cwd=repo.path, code=0)
    assert tarfile.is_tarfile(repo.path / "new")


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_half_written(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Nor the file of before in its place."""
    cli.quick("ask", "Which?", cwd=repo.path, code=0)
    before = repo.write("audit", "before")

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    for words in (("-o", "new"), ("-o", "audit", "--force")):
        said = subprocess.run(
            [str(COMMAND), "export", *words],
            cwd=repo.path,
            # Python would keep half of what it compiles.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            preexec_fn=small,
            check=False,
        )
        assert said.returncode == 1, said.stderr
        assert "cannot be written: File too large" in said.stderr
    assert before.read_text() == "before"
    assert sorted(path.name for path in repo.path.iterdir()) == [".git", "README", "audit"]


def test_what_does_not_hold_is_exported_and_said(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """An auditor wants it most of all."""
    gate = cli.quick("ask", "Which?", cwd=repo.path, code=0).line
    broken = cli.quick("ask", "Whose?", cwd=repo.path, code=0).line
    repo.git("update-ref", OPEN + broken, repo.head())
    said = cli.quick("export", "-o", "../e", cwd=repo.path, code=0)
    assert "not all of it holds" in said.err
    shape = cli.quick("export", "--json", "-o", "../f", cwd=repo.path, code=0).json
    assert (shape["ok"], shape["gates"]) == (False, 2)
    folder = unpacked(tmp_path / "e", tmp_path / "out")
    states = {one["id"]: one["state"] for one in read(folder, "gates.json")["gates"]}
    assert states == {gate: "awaiting", broken: "broken"}
    assert [one["gate"] for one in read(folder, "verify.json")["problems"]] == [broken]
    assert "1 problem" in (folder / "README.txt").read_text("utf-8")


@pytest.mark.parametrize("shallow", [False, True])
def test_a_record_whose_objects_are_missing_is_left_out_and_said(
    repo: Clone, cli: Command, tmp_path: Path, *, shallow: bool
) -> None:
    """Also where git was told that history ends there: the bundle could not be cloned with it."""
    whole = cli.quick("ask", "Which?", cwd=repo.path, code=0).line
    gate = cli.quick("ask", "Whose?", cwd=repo.path, code=0).line
    cli.quick("respond", gate, "mine", cwd=repo.path, code=0)
    oid = repo.git("rev-parse", f"{OPEN}{gate}^")
    (repo.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    if shallow:
        repo.write(".git/shallow", repo.git("rev-parse", OPEN + gate) + "\n")
    shape = cli.quick("export", "--json", "-o", "../e", cwd=repo.path, code=0).json
    assert OPEN + gate in shape["left_out"]
    assert not shape["ok"]
    folder = unpacked(tmp_path / "e", tmp_path / "out")
    run_git("clone", "-q", "--mirror", "gates.bundle", "g.git", cwd=folder)
    assert list(Clone(folder / "g.git").refs()) == [OPEN + whole]
    Clone(folder / "g.git").git("fsck", "--strict")
    assert OPEN + gate in (folder / "README.txt").read_text("utf-8")
    none = cli.quick("export", gate, "-o", "../f", cwd=repo.path, code=1)
    assert "no record is whole here" in none.err


@pytest.mark.needs("ssh-keygen")
def test_a_signature_is_checked_by_plain_git(bare: Clone, ann: Seat, cli: Command, tmp_path: Path) -> None:
    """With the keys that counted here; and verify.json says of which commit."""
    key = make_key(tmp_path / "keys", "ada", "ada@example.org")
    policy = "policy:\n  rules:\n    - {name: signed, require_signed: true}\n"
    publish_policy(bare, policy, signers=key.line)
    ann.clone.git("fetch", "-q", "origin")
    key.used_by(ann.clone)
    gate = ann.answer(ann.ask(push=False, work=False), "SQLite", push=False)
    cli.quick("export", gate.id, "-o", str(tmp_path / "e"), cwd=ann.clone.path, code=0)
    folder = unpacked(tmp_path / "e", tmp_path / "out")
    signed = {
        oid: one for oid, one in read(folder, "verify.json")["commits"].items() if one["verdict"] == "good"
    }
    assert gate.tip in signed
    assert {one["by"] for one in signed.values()} == {"ada@example.org"}
    (line,) = [
        one.strip() for one in (folder / "README.txt").read_text().splitlines() if "verify-commit" in one
    ]
    shell("git clone -q --mirror gates.bundle gates.git", folder)
    shell(line.replace("COMMIT", gate.tip), folder)
    (folder / "allowed_signers").write_text("")
    with pytest.raises(AssertionError):
        shell(line.replace("COMMIT", gate.tip), folder)


def test_where_git_names_by_sha256(person: object, cli: Command, tmp_path: Path) -> None:
    """And in a folder with a blank, from a working tree beside."""
    del person
    place = tmp_path / "a clone"
    run_git("init", "-q", "--object-format=sha256", str(place), cwd=tmp_path)
    Clone(place).commit(f="x")
    gate = cli.quick("ask", "Which?", cwd=place, code=0).line
    Clone(place).git("worktree", "add", "-q", "-b", "side", "../b side")
    cli.quick("-C", str(tmp_path / "b side"), "export", "-o", "my gates", code=0)
    folder = unpacked(tmp_path / "b side/my gates", tmp_path / "out")
    run_git("clone", "-q", "--mirror", "gates.bundle", "g.git", cwd=folder)
    checked = Clone(folder / "g.git")
    assert list(checked.refs()) == [OPEN + gate]
    checked.git("fsck", "--strict")


def test_as_a_function_it_gives_the_file(repo: Clone, cli: Command) -> None:
    gate = cli.quick("ask", "Which?", cwd=repo.path, code=0).line
    done = gitgate.export(output="a.tar.gz", directory=repo.path)
    assert (done.file, done.gates, list(done.tips), done.ok) == (repo.path / "a.tar.gz", 1, [gate], True)
    assert done.sha256 == hashlib.sha256((repo.path / "a.tar.gz").read_bytes()).hexdigest()
    with pytest.raises(gitgate.errors.Failure, match="is there already"):
        gitgate.export(output="a.tar.gz", directory=repo.path)
    assert gitgate.export(gate, output="a.tar.gz", force=True, directory=repo.path).gates == 1
    with pytest.raises(gitgate.errors.Usage, match="an id or --since"):
        gitgate.export(gate, since="1d", directory=repo.path)
    with pytest.raises(gitgate.errors.UnknownGate):
        gitgate.export("7k2fw9c3ab", output="b", directory=repo.path)


def test_nothing_is_written_in_the_repository(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Not even that a deadline has passed."""
    cli.quick("ask", "Which?", "--timeout", "1s", cwd=repo.path, code=0)
    before = repo.refs()
    with Seat(repo, lambda: 4e9) as later:
        bundle.export_gates(later.desk, bundle.ExportWishes(), tmp_path / "e")
    assert repo.refs() == before
