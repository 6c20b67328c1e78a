"""The command line shows one gate: as a letter, as JSON, as XML; and its work."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from xml.dom import minidom

import pytest

import gitgate
from gitgate.text import width
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Ask = Callable[..., str]


def test_a_letter(cli: Command, repo: Clone, ask: Ask) -> None:
    """Question, options, context, work, how to answer and history, each under its own heading, in this order."""
    repo.write("README", "A project.\nWith more.\n")
    repo.write("new", "x\n")
    gate = ask(
        "Which?", "-o", "JWT=stateless", "-o", "Sessions", "--title", "Auth", "--context", "For phones.",
        "--priority", "high", "--confidence", "0.7", "--timeout", "2h", "--to", "@ada",
    )  # fmt: skip
    said = cli.quick("show", gate, code=0).out
    parts = [
        f"{gate}  awaiting · high · due in 2h · for @ada · confidence 0.7", "Auth", "asked by", "Which?", "#1 JWT",
        "stateless", "#2 Sessions", "in your own words", "Context", "For phones.", "The work so far", "on main at",
        "2 files changed, +2 -0", "How to answer", f"git gate respond {gate[:6]} JWT", "History", "opened",
    ]  # fmt: skip
    places = [said.index(part) for part in parts]
    assert places == sorted(places)


def test_a_title_is_not_said_twice(cli: Command, ask: Ask) -> None:
    """A question that is its own title stands there once."""
    said = cli.quick("show", ask("Which database shall we use?"), code=0).out
    assert said.count("Which database shall we use?") == 1


def test_an_answered_letter(cli: Command, ask: Ask) -> None:
    """Who said what, when and how, and that nothing vouches for it; no more how to answer."""
    gate = ask("Which?")
    cli.quick("respond", gate, "words", "--note", "a note", code=0)
    said = cli.quick("show", gate, code=0).out
    assert "Answer\n  words\n  a note\n  — Ada Lovelace <ada@example.org> (unverified), " in said
    assert "How to answer" not in said


def test_what_was_remarked_and_changed(cli: Command, ask: Ask) -> None:
    """A remark stands there whole, however long; an edit says what it changed, in the trail too."""
    gate = ask("Which?")
    remark = "Which region is it for? " * 8
    cli.quick("comment", gate, remark, code=0)
    cli.quick("edit", gate, "--priority", "urgent", "--to", "@bob", code=0)
    cli.quick("edit", gate, "--to", "anyone", "--timeout", "never", code=0)
    said = cli.quick("show", gate, code=0).out
    assert f"Remarks {remark}— Ada Lovelace <ada@example.org>, " in " ".join(said.split())
    assert "Ada Lovelace: for @bob, priority urgent" in said
    trail = cli.quick("log", gate, code=0).out
    assert "Ada Lovelace: for @bob, priority urgent" in trail
    assert "Ada Lovelace: for anyone, due never" in trail


@pytest.mark.slow
def test_a_default_has_no_name(cli: Command, ask: Ask) -> None:
    """A deadline that passed is never shown as a person, and exits 124."""
    gate = ask("Which?", "-o", "A", "-o", "B", "--default", "A", "--timeout", "1s", "--on-timeout", "default")
    waited = cli.quick("wait", gate, "--for", "10s", code=124)
    assert waited.out == "A\n"
    assert "nobody answered" in waited.err
    said = cli.quick("show", gate, code=0).out
    assert "— nobody: the declared default" in said
    assert cli.quick("show", gate, "--json").json["answer"]["by"] is None


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_a_letter_fits(cli: Command, ask: Ask, columns: str) -> None:
    """Prose is wrapped at the terminal's width, and never beyond what is pleasant to read."""
    gate = ask("Which? " * 60, "--context", "日本語 " * 80)
    env = {"COLUMNS": columns, "GIT_PAGER_IN_USE": "true", "TERM": "dumb"}
    body = cli.quick("show", gate, env=env, code=0).out
    prose = [line for line in body.splitlines() if "Which?" in line or "日本語" in line]
    assert max(map(width, prose)) <= min(int(columns), 100)


def test_json_has_the_contract(cli: Command, ask: Ask) -> None:
    """At least these fields, before and after the answer."""
    gate = ask(
        "Which?", "-o", "A=first", "-o", "B", "--default", "B", "--on-timeout", "default", "--timeout", "2h"
    )
    fields = set(
        """id state title questions context asked work session delivery priority confidence deadline on_timeout answer
        answers needed claim resume pushed follows history""".split()
    )
    shape = cli.quick("show", gate, "--json", code=0).json
    assert fields <= set(shape)
    assert {"key", "prompt", "type", "options", "default"} <= set(shape["questions"][0])
    assert {"by", "agent", "at"} <= set(shape["asked"])
    assert {"branch", "base", "commit", "dirty", "files", "insertions", "deletions"} <= set(shape["work"])
    assert shape["answer"] is None
    cli.quick("respond", gate, "A", code=0)
    answer = cli.quick("show", gate, "--format", "json", code=0).json["answer"]
    assert {"values", "verdict", "note", "by", "via", "at", "signed"} <= set(answer)
    assert answer["values"] == {"answer": "A"}


def test_xml_is_well_formed_whatever_it_says(cli: Command, ask_two: str, ask: Ask) -> None:
    """Prompt, config, status, outcome, duration and response; what XML cannot hold is spelt out."""
    gate = ask("]]> & <b> \x1b[1m \u202e \ufffe \"'", "--type", "approval", "--timeout", "1h")
    pending = parsed(cli.quick("show", gate, "--format", "xml", code=0).out)
    (element,) = pending.getElementsByTagName("human-interaction")
    assert element.getAttribute("type") == "approval"
    assert element.getAttribute("status") == "pending"
    assert text(pending, "prompt") == "]]> & <b> \\x1b[1m \u202e \\ufffe \"'"
    assert text(pending, "message") == "Waiting for an answer."
    cli.quick("respond", gate, "--reject", "--note", "not <now>", code=0)
    done = parsed(cli.quick("show", gate, "--format", "xml", code=0).out)
    assert (text(done, "outcome"), text(done, "response"), text(done, "answer")) == (
        "rejected",
        "false",
        "not <now>",
    )
    assert int(text(done, "duration")) >= 0
    two = parsed(cli.quick("show", ask_two, "--format", "xml", code=0).out)
    assert [e.getAttribute("key") for e in two.getElementsByTagName("human-interaction")] == ["db", "go"]


def parsed(said: str) -> minidom.Document:
    return minidom.parseString(said)  # noqa: S318 - our own words, and the test is whether they are well-formed


def text(document: minidom.Document, name: str) -> str:
    (element,) = document.getElementsByTagName(name)
    return "".join(node.data for node in element.childNodes if isinstance(node, minidom.Text))


def test_the_work(cli: Command, repo: Clone, ask: Ask, tmp_path: Path) -> None:
    """As a diff, within the letter, and as a worktree to look around in."""
    repo.write("README", "Changed.\n")
    gate = ask("Which?")
    assert "+Changed." in cli.quick("diff", gate, code=0).out
    assert "+Changed." in cli.quick("show", gate, "--diff", code=0).out
    assert "README | 2 +-" in cli.quick("diff", gate, "--stat", code=0).out
    place = cli.quick("worktree", gate, str(tmp_path / "look"), code=0).line
    assert Path(place, "README").read_text(encoding="utf-8") == "Changed.\n"
    assert "already there" in cli.quick("worktree", gate, str(tmp_path / "look"), code=1).err


def test_a_worktree_is_taken_away_as_it_says(cli: Command, repo: Clone, ask: Ask, tmp_path: Path) -> None:
    """The command can be typed whatever its path holds, and a relative one is told as where it leads."""
    gate = ask("Which?")
    inner = repo.path / "su b"
    inner.mkdir()
    said = cli.quick("worktree", gate, "../../w t", cwd=inner, code=0)
    assert said.line == str(tmp_path / "w t")
    git, *words = shlex.split(said.err.partition("when you are done: ")[2])
    assert (git, words[-1]) == ("git", said.line)
    repo.git(*words)
    assert not Path(said.line).exists()


def test_nothing_uncommitted(cli: Command, ask: Ask) -> None:
    """A gate without work says so."""
    gate = ask("Which?")
    assert cli.quick("diff", gate, code=0).err == f"gate {gate} has no uncommitted work\n"
    assert "nothing uncommitted" in cli.quick("show", gate).out


def test_a_narrow_letter_is_no_wider_and_says_the_title_once(
    ask: Ask, cli: Command, pty_cli: Callable[..., Terminal]
) -> None:
    """A title that was taken from the question is not said before it; every line but a command to type fits."""
    prompt = "Which database should the new reporting service use for the nightly aggregates, given the load?"
    gate = ask(prompt, "--context", "words " * 30)
    cli.quick("respond", gate, "words " * 30, "--note", "noted " * 30, code=0)
    assert cli.quick("show", gate, code=0).out.replace("\n ", "").count("Which database should") == 1
    shown = pty_cli("show", gate, columns=50, env={"GIT_PAGER": "cat"}).finish(code=0)
    lines = [line for line in shown.splitlines() if "git gate" not in line]
    assert len(lines) > 20
    assert max(map(len, lines)) <= 50
    titled = ask(prompt, "--title", "The reporting database")
    assert "The reporting database" in cli.quick("show", titled, code=0).out


def test_an_error_is_broken_between_words(repo: Clone, pty_cli: Callable[..., Terminal]) -> None:
    """What is to be typed stays whole."""
    said = pty_cli("show", "Postgres", columns=50).finish(code=1).splitlines()
    assert max(map(len, said)) <= 50
    assert said[0].endswith(" have")
    assert said[-1] == "  git gate list"


@pytest.mark.parametrize("kept", ["local", pytest.param("push", marks=pytest.mark.slow)])
def test_a_program_that_is_simply_started_again_has_no_conversation(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone], kept: str
) -> None:
    """Nobody named one, and nothing was saved: neither is said to be there, and it is resumed all the same."""
    ann, bob = clone_of(bare, "ann"), clone_of(bare, "bob")
    for clone in (ann, bob):
        clone.git("config", "gitgate.agent.mine.resume", "true")
        clone.git("config", "gitgate.session", kept)
    asked = cli.quick("ask", "Which?", "--agent", "mine", "--json", cwd=ann.path, code=0).json
    gate, wanted = asked["id"], {"agent": "mine", "id": None, "saved": False}
    assert asked["session"] == wanted
    assert cli.quick("list", "--json", cwd=ann.path, code=0).json["gates"][0]["session"] == wanted
    assert "session: mine, no saved conversation" in cli.quick("status", gate, cwd=ann.path, code=0).out
    bob.git("fetch", "-q", "origin", "+refs/hitl/*:refs/hitl/*")
    assert cli.quick("show", gate, "--json", cwd=bob.path, code=0).json["session"] == wanted
    cli.quick("respond", gate, "A", "--no-resume", cwd=ann.path, code=0)
    assert cli.quick("resume", gate, "--json", cwd=ann.path, code=0).json["gates"][0]["result"] == "resumed"


def test_scripts_get_the_sessions_id(cli: Command, repo: Clone, ask: Ask) -> None:
    """Where it was asked it is known, whichever verb tells of the gate; in another clone it is not."""
    repo.git("config", "gitgate.agent.mine.resume", "mine --continue {session}")
    asked = cli.quick(
        "ask", "Which?", "-o", "A", "-o", "B", "--agent", "mine", "--session", "4711", "--json", code=0
    )
    gate, wanted = asked.json["id"], {"agent": "mine", "id": "4711", "saved": True}
    ask("Another?")
    shown = [
        asked.json,
        cli.quick("show", gate, "--json", code=0).json,
        next(one for one in cli.quick("list", "--json", code=0).json["gates"] if one["id"] == gate),
        cli.quick("check", gate, "--json", code=8).json,
        cli.quick("comment", gate, "a remark", "--json", code=0).json,
        cli.quick("respond", gate, "A", "--no-resume", "--json", code=0).json,
        gitgate.show(gate, directory=repo.path).details,
    ]
    assert [one["session"] for one in shown] == [wanted] * len(shown)
