"""Python: the verbs as functions. What they give back is frozen; what goes wrong is an error with a code and a hint."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import click
import pytest

import gitgate
from gitgate import errors
from gitgate.api.terms import SessionTerms
from gitgate.cli.main import cli as command_line
from gitgate.model import gate as model
from support.testbed.repositories import Clone

VERBS = (
    *("ask", "wait", "check", "respond", "withdraw", "stop", "comment"),
    *("edit", "list", "show", "status", "log", "sync", "signal", "verify"),
    *("diff", "worktree", "tree", "watch", "resume", "archive", "init", "doctor", "policy_check"),
    *("session_drop", "search", "why", "export", "compare", "fork"),
)
INTERACTIVE = ("ask_interactive", "pause", "complete")
HEAVY = ("click", "yaml", "pygit2", "git", "json", "subprocess", "gitgate.api")
# Flags of a terminal, or told otherwise in Python: by another name, as a list, or by the directory. `via` is the desk's own
# and hidden; what Python says is recorded as `python`.
TERMINAL_ONLY = {
    "as_json",
    "quiet",
    "color",
    "verbose",
    "everywhere",
    "edit",
    "each",
    "match",
    "template",
    "no_resume",
    *("runs", "active", "code", "continue_"),  # of runs, which are an object of their own in Python
    "online",  # asks a forge, whom only the command line knows
}
SAID_OTHERWISE = {"via", "option", "message", "pairs", "for_", "most", "most_", "gate_ids"}
# A flag and its `--no-` are one keyword that is True, False or None.
VERB_OF = {
    "session_drop": ("session", "drop"),
    "policy_check": ("policy", "check"),
}


def test_importing_it_costs_nothing() -> None:
    """Nothing but the package itself is loaded until a function is used."""
    asked = f"import sys; before = set(sys.modules); import gitgate; print(*[m for m in {HEAVY!r} if m in set(sys.modules) - before])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_verb_is_there_with_an_example_or_a_word() -> None:
    """Each is in `__all__`, typed and documented; what is not there is an AttributeError."""
    public = gitgate.api.__all__
    assert set(VERBS) <= set(public) <= set(dir(gitgate))
    for name in VERBS:
        function = getattr(gitgate, name)
        assert inspect.getdoc(function), name
        assert "directory" in inspect.signature(function).parameters, name
        assert all(
            p.annotation is not inspect.Parameter.empty
            for p in inspect.signature(function).parameters.values()
        )
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gitgate.nonsense


def test_what_functions_give_back_can_be_named() -> None:
    """Every name of `__all__` is there, also where its module is loaded late; what nobody knows is not."""
    classes = {name: getattr(gitgate, name) for name in gitgate.api.__all__ if name[0].isupper()}
    assert {name for name, found in classes.items() if not inspect.isclass(found)} == set()
    assert classes["Answer"].__mro__[1] is model.Answer
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = gitgate.api.Nonsense


@pytest.mark.parametrize("verb", [name for name in VERBS if name not in ("show", "status", "wait", "check")])
def test_keyword_arguments_are_the_long_flags(verb: str) -> None:
    """Every flag of the verb that is not about a terminal has its keyword argument."""
    command: click.Command | None = command_line
    for name in VERB_OF.get(verb, (verb,)):
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name)
    assert command is not None
    flags = {
        name.removeprefix("--").replace("-", "_")
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in TERMINAL_ONLY | SAID_OTHERWISE
        for name in parameter.opts
        if name.startswith("--")
    }
    known = set(inspect.signature(getattr(gitgate, verb)).parameters)
    if verb == "ask":
        known |= SessionTerms.__optional_keys__
    assert flags - known <= {"json"}


def test_a_keyword_that_nobody_knows_is_refused(repo: Clone) -> None:
    """As Python itself does it."""
    with pytest.raises(TypeError, match=r"ask\(\) got an unexpected keyword argument 'promt'"):
        gitgate.ask(promt="Which?")  # type: ignore[call-arg]


def test_ask_and_answer(repo: Clone) -> None:
    """A choice, its answer, and what is known of it afterwards."""
    gate = gitgate.ask(
        "Which?", type="choice", options=["A", "B=bee"], timeout="2h", push=False, context="Why not."
    )
    assert (gate.state, gate.title, gate.answer, gate.pushed, str(gate)) == (
        "awaiting",
        "Which?",
        None,
        False,
        gate.id,
    )
    assert gitgate.check(gate) is None
    done = gitgate.respond(gate, "b", note="it is better")
    answer = gitgate.check(gate.id)
    assert answer is not None
    assert answer == done.answer
    assert (answer.value, answer.values, answer.verdict) == ("B", {"answer": "B"}, "answered")
    assert (answer.text, answer.by, answer.via) == (
        "B\nit is better",
        "Ada Lovelace <ada@example.org>",
        "python",
    )
    assert repr(done) == f"<gate {gate.id}, answered: 'Which?'>"
    with pytest.raises(FrozenInstanceError):
        gate.state = "resumed"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        answer.note = "no"  # type: ignore[misc]


def test_approvals(repo: Clone) -> None:
    """True and False, or approve and reject; only a person's yes is approved."""
    for kind in ({"approve": True}, {"reject": True}):
        answer = gitgate.respond(gitgate.ask("Deploy?", type="approval"), **kind).answer  # type: ignore[arg-type]
        assert answer is not None
        assert answer.approved is ("approve" in kind)
    answer = gitgate.respond(gitgate.ask("Deploy?", type="approval"), True).answer
    assert answer is not None
    assert answer.approved
    gate = gitgate.ask("Which?", options=["A", "B"], default="A", timeout=1, on_timeout="default")
    defaulted = gitgate.wait(gate, for_=20).answer
    assert defaulted is not None
    assert (defaulted.text, defaulted.verdict, defaulted.by, defaulted.approved) == (
        "A",
        "defaulted",
        "",
        False,
    )


@pytest.mark.parametrize(
    "options",
    [["A", "B=bee"], [("A", ""), ("B", "bee")], {"A": "", "B": "bee"}, [{"label": "A"}, {"label": "B", "description": "bee"}]],
)  # fmt: skip
def test_options_may_be_written_as_one_likes(repo: Clone, options: object) -> None:
    """Labels, pairs, mappings: all the same question."""
    gate = gitgate.ask("Which?", options=options)  # type: ignore[arg-type]
    questions = gate.details["questions"]
    assert isinstance(questions, list)
    assert questions[0]["options"] == [
        {"label": "A", "description": ""},
        {"label": "B", "description": "bee"},
    ]


def test_a_form_and_a_file(repo: Clone, tmp_path: Path) -> None:
    """A schema as a mapping; several questions from a file, answered by key."""
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    form = gitgate.ask("How many?", type="form", schema=schema)
    with pytest.raises(errors.BadAnswer, match="count"):
        gitgate.respond(form, {"count": "three"})
    answer = gitgate.respond(form, {"count": 3}).answer
    assert answer is not None
    assert answer.value == {"count": 3}
    (tmp_path / "q.yaml").write_text(
        "questions:\n- {key: a, prompt: One?}\n- {key: b, prompt: Two?, type: approval}\n", encoding="utf-8"
    )
    two = gitgate.ask(file=tmp_path / "q.yaml")
    with pytest.raises(errors.BadAnswer, match="no answer for b"):
        gitgate.respond(two, answers={"a": "x"})
    answer = gitgate.respond(two, answers={"a": "x", "b": True}).answer
    assert answer is not None
    assert (answer.value, answer.values) == (None, {"a": "x", "b": True})


@pytest.mark.slow
def test_waiting_ends_with_the_answer(repo: Clone) -> None:
    """Somebody else answers meanwhile; or nobody does, in the time that was given."""
    assert gitgate.ask("Which?", wait_for=0).state == "awaiting"
    gate = gitgate.ask("Which?")
    later = threading.Timer(0.3, gitgate.respond, (gate, "this"), {"directory": repo.path})
    later.start()
    try:
        answer = gitgate.wait(gate, for_="20s").answer
    finally:
        later.join()
    assert answer is not None
    assert answer.value == "this"


def test_what_is_said_without_answering(repo: Clone) -> None:
    """comment, edit, withdraw, stop, signal: the gate as it is then."""
    gate = gitgate.ask("Which?")
    assert gitgate.comment(gate, "why?").state == "awaiting"
    assert gitgate.edit(gate, priority="urgent", to=["@ada"]).details["priority"] == "urgent"
    assert gitgate.edit(gate, to="anyone", timeout="2h").details["to"] == []
    assert gitgate.withdraw(gate, reason="found it").state == "withdrawn"
    assert gitgate.stop(gitgate.ask("Other?"), reason="enough").state == "stopped"
    answer = gitgate.signal(gitgate.ask("Deploy?", type="approval"), status="STOP", message="no").answer
    assert answer is not None
    assert (answer.verdict, answer.note) == ("rejected", "no")


def test_what_is_there(repo: Clone) -> None:
    """list, show, status, log and verify agree with what was done."""
    first, second = gitgate.ask("One?", priority="low", agent="a/1"), gitgate.ask("Two?", agent="b/2")
    third = gitgate.ask("Three?", type="approval", agent="a/1")
    gitgate.respond(third, approve=True)
    assert [gate.id for gate in gitgate.list()] == [second.id, first.id]
    assert [gate.id for gate in gitgate.list(asked_by="a/1", awaiting=True)] == [first.id]
    assert [gate.id for gate in gitgate.list(all=True, type="yesno")] == [third.id]
    assert gitgate.list(state="answered", branch="elsewhere") == ()
    shown = gitgate.show(third.id[:4])
    assert [event["event"] for event in shown.details["history"]] == ["opened", "answered"]  # type: ignore[attr-defined]
    status = gitgate.status()
    assert status.counts == {"awaiting": 2, "answered": 1}
    assert {agent["agent"] for agent in status.agents} == {"a/1", "b/2"}
    assert [event.event for event in gitgate.log(third)] == ["answered", "opened"]
    assert len(gitgate.log()) == 4
    assert len(gitgate.log(n=2)) == 2
    assert gitgate.verify().ok
    assert gitgate.verify(third).gates == 1


def test_between_clones(bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """Asked here, answered there; each call names its directory."""
    here, there = clone_of(bare, "here"), clone_of(bare, "there")
    gate = gitgate.ask("Which?", directory=here.path)
    assert gate.pushed
    assert gitgate.sync(directory=there.path).new == (gate.id,)
    assert gitgate.respond(gate, "this", directory=str(there.path)).pushed
    assert gitgate.sync("origin", directory=here.path).updated == (gate.id,)
    answer = gitgate.check(gate, directory=here.path)
    assert answer is not None
    assert answer.value == "this"


def test_what_a_remote_does_not_take_is_put_aside(bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """On whoever's word: what was said here and not shared leaves the record, and stays readable."""
    here = clone_of(bare, "here")
    gate = gitgate.ask("Which?", directory=here.path)
    gitgate.comment(gate, "hm", push=False, directory=here.path)
    done = gitgate.sync(put_aside=gate, directory=here.path)
    (one,) = done.aside
    assert (one.gate, one.event, one.reason) == (gate.id, "commented", "as you asked")
    assert "text: hm" in here.git("log", "-p", one.ref)
    assert [event.event for event in gitgate.log(gate, directory=here.path)] == ["opened"]
    with pytest.raises(errors.Failure, match="does not have gate"):
        gitgate.sync(put_aside=gitgate.ask("And?", push=False, directory=here.path), directory=here.path)


def test_errors_have_a_code_and_a_hint(repo: Clone, tmp_path: Path) -> None:
    """The same tree as the command line's."""
    gate = gitgate.ask("Which?", options=["JWT", "Sessions"])
    with pytest.raises(errors.BadAnswer, match="did you mean JWT"):
        gitgate.respond(gate, "JTW")
    gitgate.respond(gate, "JWT")
    with pytest.raises(errors.Conflict, match="already answered"):
        gitgate.respond(gate, "JWT")
    with pytest.raises(errors.UnknownGate) as unknown:
        gitgate.show("zzzz")
    assert (unknown.value.code, bool(unknown.value.hint)) == ("unknown_gate", True)
    with pytest.raises(errors.NotARepository):
        gitgate.list(directory=tmp_path)
    wrong: list[Callable[[], object]] = [
        lambda: gitgate.ask(""),
        lambda: gitgate.ask("Which?", options="A,B"),
        lambda: gitgate.ask("Which?", timeout=0),
        lambda: gitgate.ask("Which?", file="q.yaml"),
        lambda: gitgate.ask(file="missing.yaml"),
        lambda: gitgate.respond(gate),
        lambda: gitgate.respond(gate, "JWT", other="x"),
        lambda: gitgate.respond(gate, approve=True, reject=True),
        lambda: gitgate.list(type="nonsense"),
    ]
    for call in wrong:
        with pytest.raises(errors.Usage):
            call()


def test_an_agent_does_not_answer(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in Python either."""
    gate = gitgate.ask("Deploy?", type="approval")
    monkeypatch.setitem(os.environ, "CLAUDECODE", "1")
    with pytest.raises(errors.NotAllowed):
        gitgate.respond(gate, approve=True)
    with pytest.raises(errors.NotAllowed):
        gitgate.signal(gate, status="CONTINUE")


def test_the_page_about_it_is_true(repo: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    """Every example of docs/python.md runs, one after the other, and says what it promises."""
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for example in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(compile(example, "docs/python.md", "exec"), names)  # noqa: S102 - our own page
    said = capsys.readouterr().out
    assert "nobody has answered yet" in said
    assert "did you mean Postgres?" in said
    table = {
        name for row in page.splitlines() if row.startswith("| `") for name in re.findall(r"`(\w+)\(", row)
    }
    assert table == {*VERBS, *INTERACTIVE}


def test_one_path_is_a_list_of_it(repo: Clone) -> None:
    """A text is a sequence of letters to Python; here it is one file, as `to` takes one person."""
    repo.write("notes.txt", "words\n")
    repo.write(".env", "KEY=1\n")
    gate = gitgate.ask("Which?", attach="notes.txt", include=".env", directory=repo.path)
    assert gate.details["attachments"] == ["notes.txt"]
    assert ".env" in gitgate.diff(gate, directory=repo.path)
