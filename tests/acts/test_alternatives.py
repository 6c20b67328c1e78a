"""Compare: two gates side by side, with what came of each, and what is missing of it. Fork: the same question once more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gitgate
from gitgate.agents.claude import Claude
from gitgate.model.gate import SavedSession
from support.resuming import Agent, scripted_agent
from support.signing import publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

__all__ = ["scripted_agent"]

ADDS = 'echo "db = $GITGATE_ANSWER" >> app.conf; git add -A; git commit -qm "Use $GITGATE_ANSWER"'
ADA = "Ada Lovelace <ada@example.org>"


def asked(cli: Command, repo: Clone, prompt: str = "Which database?", *more: str) -> str:
    return cli.quick("ask", prompt, "--agent", "scripted", *more, cwd=repo.path, code=0).line


def acted_on(cli: Command, repo: Clone, gate: str, answer: str) -> str:
    cli.quick("respond", gate, answer, "--note", f"{answer} it is", cwd=repo.path, code=0)
    cli.quick("resume", gate, cwd=repo.path, code=0)
    return gate


def compared(cli: Command, repo: Clone, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = cli.quick("compare", *words, "--json", cwd=repo.path, code=0).json
    assert found["schema"] == "gitgate.compare/v1"
    return found


def two(cli: Command, repo: Clone, agent: Agent) -> tuple[str, str]:
    """The same question, asked twice at the same commit and answered otherwise: each outcome is on a branch of its own."""
    agent.does(ADDS)
    one, other = asked(cli, repo), asked(cli, repo)
    acted_on(cli, repo, one, "Postgres")
    return one, acted_on(cli, repo, other, "SQLite")


def test_two_outcomes_side_by_side(repo: Clone, agent: Agent, cli: Command) -> None:
    """Question, answers, by whom, commits, branches and counts; and what the second has otherwise."""
    start = repo.head()
    one, other = two(cli, repo, agent)
    found = compared(cli, repo, one[:6], other[:6])
    assert (found["same_question"], found["differs"], found["doubt"]) == (True, [], "")
    first, second = found["gates"]
    assert (first["id"], first["answer"], first["by"], first["state"]) == (one, "Postgres", ADA, "resumed")
    assert (second["id"], second["answer"], second["note"]) == (other, "SQLite", "SQLite it is")
    assert first["base"] == second["base"] == start
    for side in (first, second):
        assert (side["files"], side["insertions"], side["deletions"], side["missing"]) == (1, 1, 0, "")
        assert side["commits"] == [repo.git("rev-parse", side["branch"])] == [side["end"]]
    assert first["branch"] != second["branch"]
    assert (found["files"], found["insertions"], found["deletions"]) == (1, 1, 1)
    assert "app.conf | 2 +-" in found["diff"]
    said = cli.quick("compare", one, other, cwd=repo.path, code=0).out
    lines = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert "Which database?" in lines["question"]
    assert lines["question"].endswith("the same")
    assert "Postgres" in lines["answer"]
    assert lines["answer"].endswith("SQLite")
    assert "1 file, +1 -0" in lines["changed"]
    assert "app.conf | 2 +-" in said
    patch = cli.quick("compare", one, other, "--patch", cwd=repo.path, code=0).out
    assert "-db = Postgres\n+db = SQLite" in patch


@pytest.mark.slow
def test_no_colour_is_in_json(repo: Clone, agent: Agent, cli: Command) -> None:
    one, other = two(cli, repo, agent)
    words = ("compare", one, other, "--patch", "--color", "always")
    assert "\x1b[32m+db = SQLite" in cli.quick(*words, cwd=repo.path, code=0).out
    assert "\\u001b" not in cli.quick(*words, "--json", cwd=repo.path, code=0).out


@pytest.mark.slow
def test_the_last_words_are_told(repo: Clone, agent: Agent, cli: Command) -> None:
    """All of them, neutralised; and how many of its commits there are."""
    agent.does(
        f'{ADDS}; git commit -q --allow-empty -m two; printf "done \\033[2J with %s\\n" "$GITGATE_ANSWER"'
    )
    one, other = asked(cli, repo), asked(cli, repo)
    acted_on(cli, repo, one, "Postgres")
    acted_on(cli, repo, other, "SQLite")
    first, second = compared(cli, repo, one, other)["gates"]
    assert len(first["commits"]) == len(second["commits"]) == 2
    said = cli.quick("compare", one, other, cwd=repo.path, code=0).out
    assert "\x1b" not in said
    if first["said"]:
        assert f"last words of {one}" in said


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("awaiting", "it waits for an answer"),
        ("answered", "its agent was not resumed yet"),
        ("stopped", "stopped: we do it ourselves"),
        pytest.param("failed", "the agent failed", marks=pytest.mark.slow),
    ],
)
def test_a_missing_outcome_is_said(repo: Clone, agent: Agent, cli: Command, state: str, told: str) -> None:
    """And there is no difference to show then."""
    agent.does(ADDS)
    one, other = acted_on(cli, repo, asked(cli, repo), "Postgres"), asked(cli, repo)
    repo.git("config", "gitgate.attempts", "1")
    if state in ("answered", "failed"):
        cli.quick("respond", other, "SQLite", cwd=repo.path, code=0)
    if state == "failed":
        agent.does("exit 3")
        cli.quick("resume", other, cwd=repo.path)
    if state == "stopped":
        cli.quick("stop", other, "--reason", "we do it ourselves", cwd=repo.path, code=0)
    found = compared(cli, repo, one, other)
    assert [side["missing"] == "" for side in found["gates"]] == [True, False]
    assert found["gates"][1]["state"] == state
    assert told in found["gates"][1]["missing"]
    assert (found["diff"], found["gates"][1]["end"]) == (None, None)
    said = cli.quick("compare", one, other, cwd=repo.path, code=0).out
    assert told in said.replace("\n", " ")
    assert f"no outcome of {other}\n" in said
    assert said.endswith("no difference to show\n")


def test_an_answer_that_nobody_is_resumed_with(repo: Clone, cli: Command) -> None:
    one, other = (cli.quick("ask", "Which?", cwd=repo.path, code=0).line for _ in range(2))
    cli.quick("respond", one, "A", cwd=repo.path, code=0)
    found = compared(cli, repo, one, other)
    assert "nobody is resumed with it" in found["gates"][0]["missing"]
    assert found["gates"][1]["answer"] is None


@pytest.mark.slow
def test_other_questions_say_what_differs(repo: Clone, agent: Agent, cli: Command) -> None:
    """Of the question, and that they do not stand on the same commit: then more differs than their outcomes."""
    agent.does(ADDS)
    one = acted_on(cli, repo, asked(cli, repo), "Postgres")
    other = acted_on(cli, repo, asked(cli, repo, "Which port?", "--context", "Ours is taken."), "5433")
    found = compared(cli, repo, one, other)
    assert not found["same_question"]
    assert found["differs"] == ["prompt", "title", "context", "base"]
    assert "different commits" in found["doubt"]
    said = cli.quick("compare", one, other, cwd=repo.path, code=0)
    assert "Which port?" in said.out
    assert "different commits" in said.err


@pytest.mark.slow
def test_an_outcome_without_commits_is_what_it_began_with(repo: Clone, agent: Agent, cli: Command) -> None:
    one = asked(cli, repo)
    other = asked(cli, repo)
    agent.does(ADDS)
    acted_on(cli, repo, one, "Postgres")
    agent.does("true")
    acted_on(cli, repo, other, "neither")
    found = compared(cli, repo, one, other)
    assert (found["gates"][1]["commits"], found["gates"][1]["missing"]) == ([], "")
    assert (found["insertions"], found["deletions"]) == (0, 1)
    same = asked(cli, repo)
    acted_on(cli, repo, same, "neither")
    again = asked(cli, repo)
    acted_on(cli, repo, again, "neither")
    assert compared(cli, repo, same, again)["diff"] == ""
    assert "both came to the same files" in cli.quick("compare", same, again, cwd=repo.path, code=0).out


@pytest.mark.slow
def test_in_a_clone_that_has_not_the_commits(repo: Clone, agent: Agent, cli: Command, tmp_path: Any) -> None:
    """It says so; in one that has them all, archived gates are compared as others are."""
    one, other = two(cli, repo, agent)
    run_git("init", "-q", "--bare", "there.git", cwd=tmp_path)
    there = Clone(tmp_path / "there.git")
    there.git("fetch", "-q", str(repo.path), "refs/hitl/open/*:refs/hitl/open/*")
    found = compared(cli, there, one, other)
    assert [side["end"] for side in found["gates"]] == [None, None]
    assert all("are not here" in side["missing"] for side in found["gates"])
    assert found["diff"] is None
    cli.quick("archive", "--older-than", "0s", cwd=repo.path, code=0)
    found = compared(cli, repo, one, other)
    assert [side["archived"] for side in found["gates"]] == [True, True]
    assert "app.conf" in found["diff"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["{one}", "{one}"], 2, "both are gate"),
        (["{one}", "7k2fw9c3ab"], 1, "there is no gate"),
        (["{one}"], 2, "ID"),
    ],
)
def test_what_cannot_be_compared_says_why(
    repo: Clone, cli: Command, words: list[str], code: int, told: str
) -> None:
    one = asked(cli, repo)
    said = cli.quick("compare", *(word.format(one=one) for word in words), cwd=repo.path, code=code)
    assert told in said.err
    assert len(said.err.splitlines()) > 1


@pytest.mark.slow
def test_as_a_function_it_gives_both(repo: Clone, agent: Agent, cli: Command) -> None:
    one, other = two(cli, repo, agent)
    found = gitgate.compare(one, other, patch=True, directory=repo.path)
    assert (found.first.gate.id, found.second.answer) == (one, "SQLite")
    assert "+db = SQLite" in (found.diff or "")
    assert json.dumps(found.differs) == "[]"
    with pytest.raises(gitgate.errors.Usage):
        gitgate.compare(one, one, directory=repo.path)


def forked(cli: Command, repo: Clone, *words: str) -> str:
    return cli.quick("fork", *words, cwd=repo.path, code=0).line


def shown(cli: Command, repo: Clone, gate: str) -> dict[str, Any]:
    found: dict[str, Any] = cli.quick("show", gate, "--json", cwd=repo.path, code=0).json
    return found


SAME = ("questions", "title", "context", "priority", "confidence", "to", "needed", "delivery", "attachments")


def test_a_fork_asks_the_same_from_the_same_work(repo: Clone, agent: Agent, cli: Command) -> None:
    """Also after the first was answered and acted on; nothing of the first moves, and the second outcome is beside it."""
    repo.write("half.txt", "half")
    agent.does(ADDS)
    terms = ("-o", "Postgres", "-o", "SQLite", "--context", "Tests are slow.", "--attach", "README")
    one = acted_on(cli, repo, asked(cli, repo, "Which database?", *terms, "--priority", "high"), "Postgres")
    before, main = repo.refs(), repo.head()
    other = forked(cli, repo, one[:6])
    first, second = shown(cli, repo, one), shown(cli, repo, other)
    assert {name: second[name] for name in SAME} == {name: first[name] for name in SAME}
    assert (second["forked_from"], second["follows"], second["state"]) == (one, None, "awaiting")
    assert first["forked_from"] is None
    assert {name: second["work"][name] for name in ("base", "staged", "commit", "files")} == {
        name: first["work"][name] for name in ("base", "staged", "commit", "files")
    }
    assert second["asked"]["agent"] == first["asked"]["agent"]
    assert second["work"]["branch"].startswith(f"fork/{one[:6]}-")
    acted_on(cli, repo, other, "SQLite")
    assert {ref: repo.refs()[ref] for ref in before} == before
    assert repo.head() == main
    found = compared(cli, repo, one, other)
    assert (found["differs"], found["gates"][1]["branch"]) == ([], second["work"]["branch"])
    assert found["gates"][1]["commits"] == [repo.git("rev-parse", second["work"]["branch"])]
    assert "half.txt" in repo.git("ls-tree", "--name-only", second["work"]["branch"])
    cli.quick("verify", cwd=repo.path, code=0)
    assert f"forked from {one}" in cli.quick("show", other, cwd=repo.path, code=0).out


def test_a_fork_with_its_answer(repo: Clone, agent: Agent, cli: Command) -> None:
    """It is answered at once, by whoever forks; and the first one need not have been answered."""
    agent.does(ADDS)
    one = asked(cli, repo, "Deploy?", "--type", "approval")
    other = forked(cli, repo, one, "--reject", "--note", "not on a Friday")
    assert shown(cli, repo, one)["state"] == "awaiting"
    second = shown(cli, repo, other)
    assert (second["answer"]["verdict"], second["answer"]["note"], second["answer"]["by"]) == (
        "rejected",
        "not on a Friday",
        ADA,
    )
    assert second["asked"]["by"] == ADA
    cli.quick("resume", other, cwd=repo.path, code=0)
    assert agent.starts == [other]
    shape = cli.quick("fork", one, "--approve", "--json", cwd=repo.path, code=0).json
    assert (shape["schema"], shape["forked_from"], shape["state"]) == ("gitgate.gate/v1", one, "answered")
    shape = cli.quick("fork", one, "--json", cwd=repo.path, code=0).json
    assert (shape["schema"], shape["state"]) == ("gitgate.gate/v1", "awaiting")


@pytest.mark.slow
def test_a_fork_starts_its_agent_where_that_is_allowed(
    repo: Clone, agent: Agent, cli: Command, until_done: Callable[[str], None]
) -> None:
    agent.does(ADDS)
    cli.quick("init", cwd=repo.path, code=0)
    one = asked(cli, repo)
    said = cli("fork", one, "SQLite", cwd=repo.path, code=0)
    assert "resuming here" in said.err
    until_done(said.line)
    assert agent.starts == [said.line]


@pytest.fixture
def until_done(cli: Command, repo: Clone) -> Callable[[str], None]:
    from support.resuming import until

    return lambda gate: until(lambda: shown(cli, repo, gate)["state"] == "resumed")


@pytest.mark.slow
def test_a_fork_while_the_first_agent_works_is_none_of_its_questions(
    repo: Clone, agent: Agent, cli: Command
) -> None:
    """What is forked meanwhile is not taken for what the agent asked again."""
    one = asked(cli, repo)
    agent.does(f"(unset GITGATE_AGENT GITGATE_GATE GITGATE_SESSION; git-gate fork {one}); {ADDS}; exit 3")
    repo.git("config", "gitgate.attempts", "1")
    cli.quick("respond", one, "Postgres", cwd=repo.path, code=0)
    cli.quick("resume", one, cwd=repo.path)
    assert shown(cli, repo, one)["state"] == "failed"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["Mysql"], 2, "is not one of the options"),
        (["--approve"], 2, "--approve answers an approval"),
        (["--approve", "--reject"], 2, "not both"),
        (["Postgres", "--other", "x"], 2, ""),
    ],
)
def test_an_answer_that_does_not_fit_opens_nothing(
    repo: Clone, cli: Command, words: list[str], code: int, told: str
) -> None:
    one = asked(cli, repo, "Which?", "-o", "Postgres", "-o", "SQLite", "--no-other")
    before = repo.refs()
    said = cli.quick("fork", one, *words, cwd=repo.path, code=code)
    assert told in said.err
    assert "git gate respond" not in said.err
    assert repo.refs() == before


def test_an_agent_forks_nothing(repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    one = asked(cli, repo)
    before = repo.refs()
    said = cli.quick("fork", one, "SQLite", cwd=repo.path, env={"CLAUDECODE": "1"}, code=4)
    assert "`git gate fork` is for people" in said.err
    monkeypatch.setenv("CLAUDECODE", "1")
    with pytest.raises(gitgate.errors.NotAllowed):
        gitgate.fork(one, directory=repo.path)
    assert repo.refs() == before


def test_who_forks_is_who_asks(bare: Clone, clone_of: Callable[..., Clone], cli: Command) -> None:
    """Where the policy lets nobody answer what their own agent asked, a fork waits for somebody else, and that is said."""
    rule = "{name: others, requester_may_answer: false}"
    publish_policy(bare, f"policy:\n  rules:\n    - {rule}\n")
    clone = clone_of(bare, "ada")
    one = cli.quick("ask", "Which?", cwd=clone.path, code=0).line
    said = cli.quick("fork", one, "Postgres", cwd=clone.path, code=4)
    (other,) = said.out.splitlines()
    assert f"gate {other} was opened, and waits: " in said.err
    assert shown(cli, clone, other)["state"] == "awaiting"


def test_where_nothing_is_left_to_go_on_from(repo: Clone, agent: Agent, cli: Command, tmp_path: Path) -> None:
    """A session that was erased, one that stayed elsewhere, work that is not here: each is said, and nothing is opened."""
    one = asked(cli, repo)
    session = f"refs/hitl/sessions/{one}"
    run_git("init", "-q", "--bare", "there.git", cwd=tmp_path)
    there = Clone(tmp_path / "there.git")
    there.git("fetch", "-q", str(repo.path), "refs/hitl/open/*:refs/hitl/open/*")
    there.git("config", "user.name", "Ada Lovelace")
    there.git("config", "user.email", "ada@example.org")
    assert "the work of gate" in cli.quick("fork", one, cwd=there.path, code=1).err
    there.git("fetch", "-q", str(repo.path), f"refs/hitl/work/{one}:refs/hitl/work/{one}")
    assert "it stayed where" in cli.quick("fork", one, cwd=there.path, code=1).err
    other = asked(cli, repo, "Whose?")
    repo.git("update-ref", session, repo.git("rev-parse", f"refs/hitl/sessions/{other}"))
    assert "changed by somebody else" in cli.quick("fork", one, cwd=repo.path, code=1).err
    repo.git("update-ref", "-d", session)
    assert f"the session of gate {one} is gone" in cli.quick("fork", one, cwd=repo.path, code=1).err
    assert len(repo.refs("refs/hitl/open")) == 2


def test_what_was_saved_after_the_answer_is_not_in_a_fork(repo: Clone, agent: Agent, cli: Command) -> None:
    """The conversation goes on from what it was before anybody acted on the answer."""
    one = asked(cli, repo)
    cli.quick("respond", one, "Postgres", cwd=repo.path, code=0)
    session = f"refs/hitl/sessions/{one}"
    blob = repo.git("hash-object", "-w", "--stdin", input="what came later")
    tree = repo.git("mktree", input=f"100644 blob {blob}\tsession.yaml\n")
    raw = f"tree {tree}\nparent {repo.git('rev-parse', session)}\nauthor A <a@b.c> 4000000000 +0000\n"
    raw += "committer A <a@b.c> 4000000000 +0000\n\nlater\n"
    repo.git("update-ref", session, repo.git("hash-object", "-t", "commit", "-w", "--stdin", input=raw))
    other = forked(cli, repo, one, "SQLite")
    assert "what came later" not in repo.git("show", f"refs/hitl/sessions/{other}:session.yaml")
    cli.quick("resume", other, cwd=repo.path, code=0)
    assert shown(cli, repo, other)["state"] == "resumed"


def test_a_conversation_that_has_no_copy_is_not_gone_on_with(repo: Clone, agent: Agent, cli: Command) -> None:
    """A program that keeps it by itself, under its id, would go on in the first one's."""
    one = asked(cli, repo, "Which?", "--session", "5d14f5dd-8cd5-4721-9788-2e415584672d")
    before = repo.refs()
    said = cli.quick("fork", one, cwd=repo.path, code=1)
    assert "cannot be forked" in said.err
    assert repo.refs() == before


@pytest.mark.slow
def test_a_question_of_a_run_is_forked_with_its_run(repo: Clone, cli: Command) -> None:
    repo.write(
        "flows.py",
        'import gitgate\n\n@gitgate.flow\ndef go(x):\n    return gitgate.ask("Deploy?", type="approval", wait=True).answer\n',
    )
    run = cli("run", "flows.py:go", "1", "--json", cwd=repo.path, code=8).json["id"]
    (gate,) = cli.quick("list", "--json", cwd=repo.path, code=0).json["gates"]
    said = cli.quick("fork", gate["id"], cwd=repo.path, code=2)
    assert f"git gate run {run[:6]} --from STEP" in said.err


def test_a_question_without_a_session_and_an_archived_one(repo: Clone, cli: Command) -> None:
    """Nobody is resumed; its answer is read when it is wanted. The archive has the question, too."""
    one = cli.quick("ask", "Which?", cwd=repo.path, code=0).line
    cli.quick("respond", one, "A", cwd=repo.path, code=0)
    cli.quick("archive", "--older-than", "0s", cwd=repo.path, code=0)
    other = forked(cli, repo, one, "B")
    assert (shown(cli, repo, other)["delivery"], shown(cli, repo, other)["forked_from"]) == ("none", one)
    assert cli.quick("check", other, cwd=repo.path, code=0).line == "B"
    third = forked(cli, repo, other)
    assert shown(cli, repo, third)["forked_from"] == other


def test_a_copy_of_a_conversation_has_an_id_of_its_own() -> None:
    """In each record, and in the paths of what lies beside it; what else is said stays."""
    old = "5d14f5dd-8cd5-4721-9788-2e415584672d"
    said = f'{{"sessionId":"{old}","text":"see /c/{old}/tool-results/1.txt"}}\n'.encode()
    saved = SavedSession(
        "claude", old, "/here", f"/c/{old}", {"transcript.jsonl": said, "tasks/1.json": b"{}"}
    )
    copy = Claude().forked(saved, "0" * 32)
    assert copy is not None
    assert copy.id == "00000000-0000-4000-8000-000000000000"
    assert copy.place == f"/c/{copy.id}"
    assert copy.files == {
        "transcript.jsonl": said.replace(old.encode(), copy.id.encode()),
        "tasks/1.json": b"{}",
    }
    assert Claude().forked(SavedSession("claude", old), "0" * 32) is None


def test_a_fork_as_a_function(repo: Clone, agent: Agent, cli: Command) -> None:
    agent.does(ADDS)
    one = acted_on(cli, repo, asked(cli, repo), "Postgres")
    gate = gitgate.fork(one, "SQLite", note="what if", directory=repo.path)
    assert gate.answer is not None
    assert (gate.answer.value, gate.answer.note, gate.details["forked_from"]) == ("SQLite", "what if", one)
    waits = gitgate.fork(one, directory=repo.path)
    assert (waits.state, waits.answer) == ("awaiting", None)
    with pytest.raises(gitgate.errors.Usage):
        gitgate.fork(one, approve=True, reject=True, directory=repo.path)


@pytest.mark.slow
def test_a_fork_where_others_share_the_gates(
    bare: Clone, clone_of: Callable[..., Clone], agent: Agent, cli: Command
) -> None:
    """A server with our hook takes it; its commits go to its own branch there, and the first one's stays."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    clone = clone_of(bare, "ada")
    cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    agent.does(ADDS)
    one = acted_on(cli, clone, asked(cli, clone), "Postgres")
    main = bare.git("rev-parse", "main")
    other = forked(cli, clone, one, "SQLite")
    cli.quick("resume", other, cwd=clone.path, code=0)
    second = shown(cli, clone, other)
    assert (second["state"], second["pushed"]) == ("resumed", True)
    assert bare.git("rev-parse", "main") == main
    assert second["resume"]["commits"] == [bare.git("rev-parse", second["work"]["branch"])]
    for place in (clone, bare):
        cli.quick("verify", cwd=place.path, code=0)
