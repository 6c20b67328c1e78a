"""Why: lines of a file, the decision that their commit names, and whether the gate's own record names that commit."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gitgate
from gitgate.acts import find_gate
from gitgate.model.gate import Answer, Option, Question
from gitgate.store.git.refs import OPEN
from gitgate.store.records import Signature
from support.deciding import gate_of
from support.readme import dialogue, fenced
from support.resuming import Agent, Clock, Seat, scripted_agent
from support.signing import make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

__all__ = ["scripted_agent"]

ADA = "Ada Lovelace <ada@example.org>"
TWO_LINES = 'printf "db = $GITGATE_ANSWER\\nport = 5432\\n" >> app.conf; git add -A; git commit -qm "Use $GITGATE_ANSWER"'
Lines = list[dict[str, Any]]


def decided(cli: Command, agent: Agent, repo: Clone, prompt: str = "Which database?") -> str:
    """A gate whose answer an agent acted on, with one commit that adds two lines to `app.conf`."""
    agent.does(TWO_LINES)
    gate = cli.quick("ask", prompt, "--agent", "scripted", cwd=repo.path, code=0).line
    cli.quick("respond", gate, "Postgres", cwd=repo.path, code=0)
    cli.quick("resume", gate, cwd=repo.path, code=0)
    return gate


def why(cli: Command, repo: Clone, *words: str) -> Lines:
    found = cli.quick("why", *words, "--json", cwd=repo.path, code=0).json
    assert found["schema"] == "gitgate.why/v1"
    lines: Lines = found["lines"]
    return lines


def claiming(repo: Clone, gate: str, name: str = "app.conf", text: str = "mine\n") -> str:
    """A commit that says of itself that it came of this gate."""
    with (repo.path / name).open("a") as file:
        file.write(text)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", f"Mine\n\nGate: {gate}\nDecided-by: {ADA}")
    return repo.git("rev-parse", "HEAD")


def test_lines_name_the_decision_behind_them(repo: Clone, agent: Agent, cli: Command) -> None:
    """Consecutive lines of one commit are one entry; those without a decision have none; uncommitted ones no commit."""
    repo.commit(**{"app.conf": "# ours\n"})
    start = repo.head()
    gate = decided(cli, agent, repo)
    with (repo.path / "app.conf").open("a") as file:
        file.write("new\n")
    plain, told, fresh = why(cli, repo, "app.conf")
    assert (plain["from"], plain["to"], plain["commit"], plain["gate"]) == (1, 1, start, None)
    assert {
        name: told[name] for name in ("from", "to", "commit", "gate", "question", "answer", "by", "verified")
    } == {
        "from": 2,
        "to": 3,
        "commit": repo.head(),
        "gate": gate,
        "question": "Which database?",
        "answer": "Postgres",
        "by": ADA,
        "verified": True,
    }
    assert told["at"].endswith("Z")
    assert (fresh["from"], fresh["to"], fresh["commit"], fresh["gate"]) == (4, 4, None, None)
    said = cli.quick("why", "app.conf", cwd=repo.path, code=0)
    assert said.out.splitlines()[0] == f"2-3  {gate[:6]}  Which database?"
    assert "→ Postgres · Ada Lovelace (unverified), " in said.out
    assert (told["signed"], told["signature"]) == (
        False,
        {"verdict": "unverified", "by": None, "key": None},
    )
    assert "NOT VERIFIED" not in said.out
    assert "1 line of commits that name no decision; 1 line not committed yet" in said.err


@pytest.mark.slow
def test_what_the_answers_signature_is_worth_is_said(
    bare: Clone, ann: Seat, cli: Command, tmp_path: Path
) -> None:
    """Of `why` and of `search`, in the words of `show`: anybody can write a name into an answer."""
    unsigned = ann.answer(ann.ask(push=False, work=False), "Postgres", push=False)
    key = make_key(tmp_path / "keys", "ada", "ada@example.org")
    policy = "policy:\n  rules:\n    - {name: signed, require_signed: true}\n"
    publish_policy(bare, policy, signers=key.line)
    ann.clone.git("fetch", "-q", "origin")
    key.used_by(ann.clone)
    signed = ann.answer(ann.ask(push=False, work=False), "SQLite", push=False)
    claiming(ann.clone, unsigned.id, "one")
    claiming(ann.clone, signed.id, "two")
    for name, gate, words in (
        ("one", unsigned, "Postgres · Ada Lovelace (unverified)"),
        ("two", signed, "SQLite · Ada Lovelace (verified, signed by ada@example.org)"),
    ):
        assert words in cli.quick("why", name, cwd=ann.clone.path, code=0).out
        answer = cli.quick("show", gate.id, "--json", cwd=ann.clone.path, code=0).json["answer"]
        (told,) = why(cli, ann.clone, name)
        assert (told["signed"], told["signature"]) == (answer["signed"], answer["signature"])
        assert told["signed"] is (gate is signed)
        assert words in cli.quick("search", "which", cwd=ann.clone.path, code=0).out
    found = cli.quick("search", "which", "--json", cwd=ann.clone.path, code=0).json["gates"]
    assert {one["id"]: one["answer"]["signed"] for one in found} == {unsigned.id: False, signed.id: True}


def test_what_nobody_confirmed_is_not_told_as_somebodys(alone: Seat, cli: Command) -> None:
    """What a program answered stands in somebody's name, and is not their word: as `show` says."""
    gate, desk = alone.ask(push=False, work=False), alone.desk
    said = Answer(gate.id, {"answer": "Postgres"}, "answered", desk.now, gate.tip, ADA, "automatic")
    after = desk.records.write_event(gate, "answered", said, Signature(ADA, desk.at))
    alone.clone.git("update-ref", OPEN + gate.id, after.tip)
    claiming(alone.clone, gate.id)
    words = "nobody confirmed it; recorded for Ada Lovelace"
    assert words in cli.quick("show", gate.id, cwd=alone.clone.path, code=0).out
    words = f"→ Postgres · {words} (unverified)"
    assert words in cli.quick("why", "app.conf", cwd=alone.clone.path, code=0).out
    assert words in cli.quick("search", "which", cwd=alone.clone.path, code=0).out
    assert [one["confirmed"] for one in why(cli, alone.clone, "app.conf")] == [False]


def test_a_default_is_nobodys(alone: Seat, clock: Clock, cli: Command) -> None:
    """No name stands there, and no word on a signature."""
    question = Question("answer", "Which?", "choice", (Option("A"), Option("B")), default="B")
    gate = gate_of(alone, question, timeout=60, on_timeout="default")
    clock.pass_by(100)
    find_gate(alone.desk, gate.id)
    claiming(alone.clone, gate.id)
    assert "→ B · nobody (its default), " in cli.quick("why", "app.conf", cwd=alone.clone.path, code=0).out
    (told,) = why(cli, alone.clone, "app.conf")
    assert (told["answer"], told["by"], told["signed"], told["signature"]) == ("B", None, False, None)
    assert "→ B · nobody (its default)\n" in cli.quick("search", "which", cwd=alone.clone.path, code=0).out


def test_a_trailer_alone_is_a_claim(repo: Clone, agent: Agent, cli: Command) -> None:
    """Whoever writes a gate's id below a commit of theirs has not made it come of that gate."""
    gate = decided(cli, agent, repo)
    forged = claiming(repo, gate)
    unknown = claiming(repo, "7k2fw9c3ab")
    claiming(repo, "no gate's id")
    lines = why(cli, repo, "app.conf")
    assert [(one["gate"], one["verified"]) for one in lines] == [
        (gate, True),
        (gate, False),
        ("7k2fw9c3ab", False),
        (None, False),
    ]
    assert lines[1]["commit"] == forged
    assert lines[1]["answer"] == "Postgres"
    assert (lines[2]["commit"], lines[2]["question"], lines[2]["by"]) == (unknown, None, None)
    said = cli.quick("why", "app.conf", cwd=repo.path, code=0).out
    assert "NOT VERIFIED: its record does not name this commit" in said
    assert "NOT VERIFIED: there is no gate 7k2fw9c3ab here: git gate sync" in said


def test_a_copy_of_the_commit_is_not_the_commit(repo: Clone, agent: Agent, cli: Command) -> None:
    """An amended commit has the trailers still, and may say anything."""
    decided(cli, agent, repo)
    repo.write("app.conf", "db = MySQL\n")
    repo.git("commit", "-q", "-a", "--amend", "--no-edit")
    (only,) = why(cli, repo, "app.conf")
    assert not only["verified"]


@pytest.mark.parametrize("how", ["picked", pytest.param("squashed", marks=pytest.mark.slow)])
def test_what_git_makes_of_the_message_keeps_the_claim(
    repo: Clone, agent: Agent, cli: Command, how: str
) -> None:
    """A line that git adds below the trailers, and an indent before them: the lines are told of, as not verified."""
    start = repo.head()
    gate = decided(cli, agent, repo)
    work = repo.head()
    repo.git("reset", "-q", "--hard", start)
    repo.commit(other="x\n")
    if how == "picked":
        repo.git("cherry-pick", "-x", work)
        assert "(cherry picked from commit" in repo.git("log", "-1", "--format=%B")
    else:
        repo.git("merge", "-q", "--squash", work)
        repo.git("commit", "-q", "--no-edit")
        assert f"    Gate: {gate}" in repo.git("log", "-1", "--format=%B")
    (only,) = why(cli, repo, "app.conf")
    assert (only["gate"], only["answer"], only["verified"]) == (gate, "Postgres", False)
    assert (
        "NOT VERIFIED: its record does not name this commit"
        in cli.quick("why", "app.conf", cwd=repo.path, code=0).out
    )


def test_an_archived_gate_is_known(repo: Clone, agent: Agent, cli: Command) -> None:
    gate = decided(cli, agent, repo)
    cli.quick("archive", "--older-than", "0s", cwd=repo.path, code=0)
    assert not repo.refs(OPEN)
    (only,) = why(cli, repo, "app.conf")
    assert (only["gate"], only["answer"], only["verified"]) == (gate, "Postgres", True)


@pytest.mark.slow
def test_a_gate_that_is_archived_and_open_again_is_not_verified(
    repo: Clone, agent: Agent, cli: Command
) -> None:
    """As `verify` refuses it. Where both end at the same commit it is one gate still, as `verify` says."""
    gate = decided(cli, agent, repo)
    same = repo.git("rev-parse", OPEN + gate)
    raw = repo.git("cat-file", "commit", same)
    later = re.sub(r"(?m)^(committer .*> )\d+", rf"\g<1>{time.time() + 1:.0f}", raw) + "\n"
    other = repo.git("hash-object", "-t", "commit", "-w", "--stdin", input=later)
    work = repo.git("rev-parse", f"refs/hitl/work/{gate}")
    cli.quick("archive", "--older-than", "0s", cwd=repo.path, code=0)
    repo.git("update-ref", f"refs/hitl/work/{gate}", work)
    for tip, code, doubt in ((same, 0, ""), (other, 1, "it is archived, and open again: git gate sync")):
        repo.git("update-ref", OPEN + gate, tip)
        cli.quick("verify", gate, cwd=repo.path, code=code)
        (only,) = why(cli, repo, "app.conf")
        assert (only["verified"], only["doubt"]) == (not doubt, doubt)


def test_a_record_that_does_not_hold_verifies_nothing(repo: Clone, agent: Agent, cli: Command) -> None:
    """A message that says something else than the record: `verify` names it, and so does this."""
    gate = decided(cli, agent, repo)
    tip = repo.git("rev-parse", OPEN + gate)
    message = repo.git("log", "-1", "--format=%B", tip).replace("Which database", "Which poison")
    parent = repo.git("rev-parse", f"{tip}^")
    repo.git(
        "update-ref", OPEN + gate, repo.git("commit-tree", f"{tip}^{{tree}}", "-p", parent, input=message)
    )
    (only,) = why(cli, repo, "app.conf")
    assert not only["verified"]
    assert "its subject" in only["doubt"] or "its message" in only["doubt"]
    repo.git("update-ref", OPEN + gate, repo.head())
    (only,) = why(cli, repo, "app.conf")
    assert (only["gate"], only["question"], only["verified"]) == (gate, None, False)


def test_an_answer_that_the_policy_did_not_allow_verifies_nothing(alone: Seat, cli: Command) -> None:
    """The record is whole; whoever answered was not allowed to."""
    repo = alone.clone
    repo.commit(
        **{".gitgate.yml": "policy:\n  rules:\n    - {name: bobs, who: bob@example.org}\n", "f": "x\n"}
    )
    alone.clock.at += 200_000  # type: ignore[attr-defined]
    gate, desk = alone.ask(push=False, work=False), alone.desk
    said = Answer(gate.id, {"answer": "Postgres"}, "answered", desk.now, gate.tip, ADA)
    after = desk.records.write_event(gate, "answered", said, Signature(ADA, desk.at))
    repo.git("update-ref", OPEN + gate.id, after.tip)
    claiming(repo, gate.id, "f")
    told = why(cli, repo, "f")[-1]
    assert told["gate"] == gate.id
    assert not told["verified"]
    assert "does not name this commit" not in told["doubt"]


@pytest.mark.slow
def test_a_commit_may_name_two_gates(repo: Clone, agent: Agent, cli: Command) -> None:
    """As a squashed merge does: its lines are told of for each."""
    one, other = decided(cli, agent, repo), decided(cli, agent, repo, "Which port?")
    repo.git("reset", "-q", "--soft", "HEAD~2")
    repo.git("commit", "-q", "-m", f"Both\n\nGate: {one}\nGate: {other}\nGate: {one}")
    assert [(line["from"], line["to"], line["question"]) for line in why(cli, repo, "app.conf")] == [
        (1, 4, "Which database?"),
        (1, 4, "Which port?"),
    ]


@pytest.mark.slow
def test_a_renamed_file_in_a_folder(repo: Clone, agent: Agent, cli: Command) -> None:
    """As blame follows it; a path is meant from where it is typed."""
    gate = decided(cli, agent, repo)
    (repo.path / "etc").mkdir()
    repo.git("mv", "app.conf", "etc/db:1")
    repo.git("commit", "-q", "-m", "moved")
    (repo.path / "etc" / "deep").mkdir()
    for where, words in (
        (repo.path / "etc", "db:1"),
        (repo.path, "etc/db:1:2"),
        (repo.path / "etc/deep", "../db:1:1,2"),
    ):
        (only,) = cli.quick("why", words, "--json", cwd=where, code=0).json["lines"]
        assert (only["gate"], only["verified"]) == (gate, True)
    (again,) = cli.quick("-C", str(repo.path / "etc"), "why", "db:1", "--json", code=0).json["lines"]
    assert again["gate"] == gate
    (old,) = why(cli, repo, "--rev", "HEAD~1", "app.conf")
    assert old["gate"] == gate


def test_a_bare_repository_needs_a_commit(repo: Clone, agent: Agent, cli: Command, tmp_path: Any) -> None:
    gate = decided(cli, agent, repo)
    bare = tmp_path / "bare.git"
    run_git("clone", "-q", "--mirror", str(repo.path), str(bare), cwd=tmp_path)
    (only,) = cli.quick("why", "--rev", "main", "app.conf:1,2", "--json", cwd=bare, code=0).json["lines"]
    assert (only["gate"], only["verified"]) == (gate, True)
    said = cli.quick("why", "app.conf", cwd=bare, code=2)
    assert "git gate why --rev HEAD app.conf" in said.err


@pytest.mark.slow
def test_where_a_shallow_clone_ends_nothing_is_claimed(
    repo: Clone, agent: Agent, cli: Command, tmp_path: Any
) -> None:
    """There blame gives all older lines to one commit, which may not have made them."""
    repo.commit(**{"app.conf": "# ours\n"})
    decided(cli, agent, repo)
    run_git("clone", "-q", "--depth=1", f"file://{repo.path}", "shallow", cwd=tmp_path)
    (only,) = cli.quick("why", "app.conf", "--json", cwd=tmp_path / "shallow", code=0).json["lines"]
    assert (only["gate"], only["verified"]) == (None, False)
    assert "--unshallow" in only["doubt"]
    assert "--unshallow" in cli.quick("why", "app.conf", cwd=tmp_path / "shallow", code=0).err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["README:2"], 2, "README has only 1 line"),
        (["README:0"], 2, "expected the first one"),
        (["README:3,2"], 2, "expected the first one"),
        (["nothing"], 1, "there is no file nothing"),
        (["fresh"], 1, "fresh was never committed"),
        (["."], 2, "is a directory"),
        (["../outside"], 1, "is outside of this repository"),
        (["--rev", "nope", "README"], 1, "there is no commit nope"),
        (["--rev", "--help", "README"], 1, "there is no commit --help"),
        (["--rev", "HEAD", "nothing"], 1, "there is no file nothing at"),
        (["--rev", "", "README"], 2, "git gate why FILE[:LINE[,LINE]] --rev REV"),
        (["n" * 300], 1, "there is no file nnn"),
        ([f"{'n' * 300}/README:3"], 1, "there is no file nnn"),
        (["--rev", "HEAD", "n" * 300], 1, "there is no file nnn"),
        (["new file"], 1, "git log --all -- 'new file'"),
        (["old file:9"], 2, "git gate why 'old file'\n"),
        (["old file:0"], 2, "git gate why 'old file':1,20"),
        ([], 2, "FILE"),
    ],
)
def test_what_cannot_be_told_says_why(
    repo: Clone, cli: Command, words: list[str], code: int, told: str
) -> None:
    repo.commit(**{"old file": "x\n"})
    repo.write("fresh", "x\n")
    repo.write("new file", "x\n")
    said = cli.quick("why", *words, cwd=repo.path, code=code)
    assert told in said.err
    assert len(said.err.splitlines()) > 1, "no word on what to do next"


def test_a_hint_names_the_file_as_it_was_typed(repo: Clone, cli: Command) -> None:
    """From a folder, the name from the top would be another file's."""
    repo.commit(f="x\n")
    (repo.path / "deep").mkdir()
    repo.write("fresh", "x\n")
    long = cli.quick("why", "../f:9", cwd=repo.path / "deep", code=2).err
    assert "git gate why ../f\n" in long
    cli.quick("why", "../f", cwd=repo.path / "deep", code=0)
    new = cli.quick("why", "../fresh", cwd=repo.path / "deep", code=1).err
    assert "git log --all -- ../fresh\n" in new


@pytest.mark.parametrize("words", [("a\0b", None), ("README", "HEAD\0"), ("n/\0/x:3", "HEAD")])
def test_a_null_byte_names_nothing(repo: Clone, words: tuple[str, str | None]) -> None:
    with pytest.raises(gitgate.errors.Usage, match="null byte"):
        gitgate.why(words[0], rev=words[1], directory=repo.path)


def test_no_program_of_the_file_is_run(repo: Clone, cli: Command) -> None:
    """A file's attributes may name a program that shows it otherwise; lines are as they are in the file."""
    repo.git("config", "diff.odd.textconv", "touch pwned; cat")
    repo.commit(**{".gitattributes": "*.odd diff=odd\n", "a.odd": "x\n"})
    assert [one["gate"] for one in why(cli, repo, "a.odd")] == [None]
    assert not (repo.path / "pwned").exists()


def test_what_is_shown_does_nothing_to_a_terminal(repo: Clone, agent: Agent, cli: Command) -> None:
    decided(cli, agent, repo, "Which \x1b[2Jdatabase?\nGate: x")
    said = cli.quick("why", "app.conf", cwd=repo.path, code=0).out
    assert "\x1b" not in said
    assert len(said.splitlines()) == 2


def test_as_a_function(repo: Clone, agent: Agent, cli: Command) -> None:
    gate = decided(cli, agent, repo)
    (only,) = gitgate.why("app.conf:1,2", directory=repo.path)
    assert (only.first, only.last, only.gate, only.answer, only.verified) == (1, 2, gate, "Postgres", True)
    assert gitgate.why("app.conf", rev="HEAD", directory=repo.path) == (only,)
    with pytest.raises(gitgate.errors.Failure):
        gitgate.why("nothing", directory=repo.path)
    assert replace(only, gate=None).gate is None


@pytest.mark.slow
def test_the_page_in_its_order(repo: Clone, agent: Agent, cli: Command) -> None:
    """docs/earlier.md, word for word but for ids, commits and ages: two decisions, and a commit that only claims one."""
    page = (Path(__file__).parents[2] / "docs" / "earlier.md").read_text("utf-8")
    file = repo.path / "src/db.py"

    def lines(name: str, count: int) -> None:
        with file.open("a") as out:
            out.writelines(f"{name} {number}\n" for number in range(count))

    def by(name: str, email: str) -> None:
        repo.git("config", "user.name", name)
        repo.git("config", "user.email", email)

    by("Ada Lovelace", "ada@example.org")
    file.parent.mkdir()
    lines("ours", 39)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "Ours")
    agent.does(
        'for n in $(seq 13); do echo "db $n"; done >> src/db.py; git commit -qam "Use $GITGATE_ANSWER"'
    )
    gate = cli.quick("ask", "Which database?", "--agent", "scripted", cwd=repo.path, code=0).line
    cli.quick("respond", gate, "Postgres", cwd=repo.path, code=0)
    cli.quick("resume", gate, cwd=repo.path, code=0)
    lines("later", 4)
    repo.git("commit", "-qam", "Later")
    by("Bob", "bob@example.org")
    agent.does("")
    port = cli.quick("ask", "Keep the old port?", "--type", "approval", cwd=repo.path, code=0).line
    cli.quick("respond", port, "--approve", cwd=repo.path, code=0)
    claiming(repo, port, "src/db.py", "port\n")
    lines("last", 2)
    repo.git("commit", "-qam", "Last")
    lines("now", 1)
    context = "Which database the tests use decides how long they take."
    other = ("Which database for the tests?", "--context", context, "--agent", "scripted")
    tests = cli.quick("ask", *other, cwd=repo.path, code=0).line
    cli.quick("respond", tests, "SQLite", cwd=repo.path, code=0)
    cli.quick("resume", tests, cwd=repo.path, code=0)

    searched, blamed = fenced(page, "console", 0), fenced(page, "console", 1)
    for block, ids in ((searched, (gate, tests)), (blamed, (gate, port))):
        ((_, words, told),) = dialogue(f"```console\n{block}```\n")
        said = cli.quick(*words.replace('"', "").split(" ", 3)[2:], cwd=repo.path, code=0)
        shown = (said.out + said.err).splitlines()
        for line in told:
            known = line.replace("7k2fw9", ids[0][:6]).replace("c3abxq", ids[1][:6])
            form = re.sub(r"\\? +\d+[dhy]\b", r" +\\d+[sm]", re.escape(known).replace("\\ ", " "))
            form = re.sub(r"\b[0-9a-f]{12}\b", "[0-9a-f]{12}", form)
            assert any(re.fullmatch(form, one) for one in shown), (form, shown)
    given = fenced(page, "console", 2).partition("\n")
    example = json.loads(given[2].replace("\n", " "))
    real = cli.quick("why", "src/db.py:40", "--json", cwd=repo.path, code=0).json
    assert list(real) == list(example)
    assert [list(one) for one in real["lines"]] == [list(one) for one in example["lines"]]
    varies = {"commit", "gate", "at"}
    assert {k: v for k, v in real["lines"][0].items() if k not in varies} == {
        k: v for k, v in example["lines"][0].items() if k not in varies
    }
