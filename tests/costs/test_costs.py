"""Each change of the guide's table, made with something that there is not, and held to what its kind has to do."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from support import made_up, made_up_type
from support.forges import tiny as tiny_forge
from support.testbed.command import run_seen, shell_called
from support.testbed.copied import PackageCopy
from support.testbed.repositories import Clone

SESSION = "5d14f5dd-8cd5-4721-9788-2e415584672d"


def ask(copy: PackageCopy, repo: Clone, *words: str) -> str:
    return copy("ask", "Which?", "-q", *words, cwd=repo.path, code=0).line


def test_an_agent(copy: PackageCopy, repo: Clone, tmp_path: Path) -> None:
    """It asks as itself, does not answer (also where its shell cleared its marks), and is resumed with the answer."""
    copy.add("agents/made_up.py", Path(made_up.__file__).read_text(encoding="utf-8"))
    copy.put("agents/__init__.py", "from .made_up import MadeUp\n", before="from .codex import Codex")
    copy.put("agents/__init__.py", "        MadeUp(),\n", before="        FlowRun(),  #")
    asked = copy("ask", "Which?", "--json", cwd=repo.path, MADE_UP="1", MADE_UP_SESSION=SESSION).json
    assert (asked["asked"]["agent"], asked["session"]["agent"]) == (f"repo/{SESSION[:4]}", "made-up")
    gate = asked["id"]
    copy("respond", gate, "Postgres", cwd=repo.path, code=4, MADE_UP_PID="7")
    copy("respond", gate, "Postgres", cwd=repo.path, code=4, SHARED="made-up")
    shell = shell_called(tmp_path / "own", "madeup")
    script = f"{sys.executable} -m gitgate respond {gate} Postgres; exit $?"
    seen = run_seen(f"{shell} -c {shlex.quote(script)}", repo.path, PYTHONPATH=str(copy.site))
    assert "is made-up)" in seen.err
    copy("respond", gate, "Postgres", "--no-resume", cwd=repo.path, code=0)
    program = tmp_path / "bin" / "made-up"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" "${{MADE_UP:-clean}}" > {tmp_path}/said\n')
    program.chmod(0o755)
    path = os.pathsep.join((str(program.parent), os.environ["PATH"]))
    copy("resume", gate, cwd=repo.path, code=0, PATH=path)
    assert (tmp_path / "said").read_text() == f"--go-on {SESSION} clean\n"


def test_a_question_type(copy: PackageCopy, repo: Clone) -> None:
    """It is asked, listed, shown and answered; what does not fit is refused with what would."""
    copy.add("questions/percent.py", Path(made_up_type.__file__).read_text(encoding="utf-8"))
    copy.put("questions/types.py", "from .percent import Percent\n", before="from . import (")
    copy.put("questions/types.py", "        Percent(),\n", before="        SessionType(),")
    gate = ask(copy, repo, "--type", "percentage")
    assert copy("list", "--type", "percent", "--json", cwd=repo.path).json["gates"][0]["id"] == gate
    assert "a part of a hundred" in copy("show", gate, cwd=repo.path, code=0).out
    assert "such as 50%" in copy("respond", gate, "many", cwd=repo.path, code=2).err
    copy("respond", gate, "40", cwd=repo.path, code=0)
    assert copy("check", gate, cwd=repo.path, code=0).line == "40%"


FROM_PYTHON = 'import gitgate; print(gitgate.ask("Which?", ticket="T-3").id)'
NEEDED = """
from gitgate.questions.signals import draft_of, read_need
print(draft_of(read_need({"status": "needs_input", "question": "Which?", "ticket": "T-4"})).ticket)
"""


def test_a_field_of_a_gate(copy: PackageCopy, repo: Clone, tmp_path: Path) -> None:
    """One row, and an attribute of the two values that hold it: a flag, a file's field, a keyword, the record, the letter and JSON follow."""
    row = '    GateField("ticket", "Where the work is planned.", metavar="NUMBER", also=("issue",), usual="", told="for {}"),\n'
    copy.put("questions/file.py", row, before='    GateField("follows"),')
    copy.put("model/gate.py", '    ticket: str = ""\n', before="    follows: str | None = None")
    copy.put("questions/drafts.py", '    ticket: str = ""\n', before="    attach: tuple[str, ...] = ()")
    assert "--ticket NUMBER" in copy("ask", "--help", cwd=repo.path).out
    (tmp_path / "q.yaml").write_text("prompt: Which?\nissue: T-2\n", encoding="utf-8")
    said = {
        "T-1": ask(copy, repo, "--ticket", "T-1"),
        "T-2": copy("ask", "--file", str(tmp_path / "q.yaml"), "-q", cwd=repo.path, code=0).line,
        "T-3": copy.script(FROM_PYTHON, repo.path).strip(),
        "": ask(copy, repo),
    }
    for ticket, gate in said.items():
        assert copy("show", gate, "--json", cwd=repo.path).json["ticket"] == ticket
        assert (f"· for {ticket}" in copy("show", gate, cwd=repo.path).out) is bool(ticket)
        record = repo.git("show", f"refs/hitl/open/{gate}:question.yaml")
        assert (f"ticket: {ticket}" in record) is bool(ticket)
    assert copy.script(NEEDED, repo.path) == "T-4\n"
    (tmp_path / "q.yaml").write_text("prompt: Which?\ntickt: T-2\n", encoding="utf-8")
    assert (
        "did you mean ticket?" in copy("ask", "--file", str(tmp_path / "q.yaml"), cwd=repo.path, code=2).err
    )


RUNNER = """
import json
from .runner import Order


class MadeUpRunner:
    name = "made-up"
    hands_out = False

    def start(self, order: Order) -> str:
        (order.directory / "ordered").write_text(json.dumps(order.gates))
        return "made-up://7"
"""


@pytest.mark.slow
def test_a_runner(copy: PackageCopy, repo: Clone) -> None:
    """It is named by the flag and by the setting, and is given an order with the gate; a name that is none is refused with its own."""
    copy.add("runners/made_up.py", RUNNER)
    copy.put("runners/__init__.py", "from .made_up import MadeUpRunner\n", before="from .runner import")
    copy.put("runners/__init__.py", "    MadeUpRunner(),\n", before="    Local(),")
    copy.change(
        "config.py", '"word:local,github,command,celery"', '"word:local,github,command,celery,made-up"'
    )
    repo.git("config", "gitgate.agent.scripted.resume", "true")
    gate = ask(copy, repo, "--agent", "scripted", "--session", SESSION)
    copy("respond", gate, "Postgres", "--no-resume", cwd=repo.path, code=0)
    repo.git("config", "gitgate.runner", "made-up")
    said = copy("resume", gate, cwd=repo.path, code=0)
    assert "resuming by made-up (log made-up://7)" in said.err
    assert json.loads((repo.path / "ordered").read_text()) == [gate]
    assert "made-up" in copy("resume", gate, "--runner", "madeup", cwd=repo.path, code=2).err


REPLIES = """
from gitgate.surfaces.forge.hosts import Author
from gitgate.surfaces.forge.hosts.tiny import HERE

HERE.write(7, Author("eve", 8), "/answer MySQL")
HERE.write(7, Author("ada", 7), "/answer Postgres")
"""
SHOWN = "from gitgate.surfaces.forge.hosts.tiny import HERE; print(HERE.comments[1].body, HERE.reactions)"
JOB = {
    "GITHUB_API_URL": "https://tiny.example/api",
    "GITHUB_SERVER_URL": "https://tiny.example",
    "GITHUB_REPOSITORY": "team/project",
    "GITGATE_GITHUB_TOKEN": "a-token",
}


@pytest.mark.slow
def test_a_forge(copy: PackageCopy, bare: Clone, repo: Clone) -> None:
    """It shows the question, takes the reply of somebody who may write, and of nobody else."""
    tiny = Path(tiny_forge.__file__).read_text(encoding="utf-8")
    copy.add("surfaces/forge/hosts/tiny.py", f'{tiny}\n\nHERE = Tiny("team/project")\n')
    copy.put("surfaces/forge/hosts/connect.py", "from .tiny import HERE\n", before="from .web import ")
    line = '    "tiny": ForgeKind(lambda _place, _web: HERE, lambda server: f"{server}/api"),\n'
    copy.put("surfaces/forge/hosts/connect.py", line, before='    "gitea": ForgeKind(')
    copy.change("config.py", '"word:github,gitea,gitlab"', '"word:github,gitea,gitlab,tiny"')
    repo.git("remote", "add", "origin", str(bare.path))
    for key, value in {"forge": "tiny", "forgeIssue": "7", "initialised": "true"}.items():
        repo.git("config", f"gitgate.{key}", value)
    gate = ask(copy, repo)
    copy("github", "comment", gate, cwd=repo.path, code=0, **JOB)
    assert "Which?" in copy.script(SHOWN, cwd=repo.path)
    copy.script(REPLIES, cwd=repo.path)
    copy("github", "sweep", cwd=repo.path, code=0, **JOB)
    shown = copy.script(SHOWN, cwd=repo.path)
    assert "Answered" in shown
    assert "(3, '+1')" in shown
    said = copy("show", gate, "--json", cwd=repo.path, code=0).json
    assert (said["answer"]["values"], said["answer"]["via"]) == ({"answer": "Postgres"}, "tiny")


EVENT_SCRIPT = """
import os
from pathlib import Path
from gitgate.acts import open_gate
from gitgate.context import open_desk
from gitgate.gates.recording import record
from gitgate.errors import IllegalEvent
from gitgate.model.gate import Remark

desk = open_desk(Path.cwd(), os.environ)
gate = open_gate(desk, os.environ["GATE"])
event = Remark(at=desk.now, by=desk.person(), text="it is on my list")
try:
    record(desk, gate, lambda _now: ("noticed", event), who=desk.person())
except IllegalEvent as refused:
    print(refused.message)
desk.close()
"""


@pytest.mark.slow
def test_an_event(copy: PackageCopy, repo: Clone) -> None:
    """It is recorded, read back, told in the log in its colour, holds no answer up, and comes only where its row is."""
    row = '    StateRow(AWAITING, "noticed", AWAITING, "a person has seen it, and is thinking"),\n'
    copy.put("model/__init__.py", row, before='    StateRow(ANSWERED, "amended", ')
    traits = '    "noticed": EventTraits("cyan", said=True, talk=True, harmless=True),\n'
    copy.put("model/__init__.py", traits, before='    "late": EventTraits(')
    kind = '    EventKind("noticed", "notices", parse_remark),\n'
    copy.put("record/events.py", kind, before='    EventKind("edited", ')
    gate = ask(copy, repo)
    seen = copy("show", gate, "--json", cwd=repo.path, code=0).json["tip"]
    assert copy.script(EVENT_SCRIPT, cwd=repo.path, GATE=gate) == ""
    shown = copy("show", gate, "--json", cwd=repo.path, code=0).json
    assert (shown["state"], shown["history"][-1]["event"]) == ("awaiting", "noticed")
    said = copy("log", gate, "--color", "always", cwd=repo.path, code=0).out
    assert "\x1b[36mnoticed" in said
    assert "it is on my list" in said
    copy("respond", gate, "Postgres", "--seen", seen, cwd=repo.path, code=0)
    copy("verify", cwd=repo.path, code=0)
    assert "cannot be noticed" in copy.script(EVENT_SCRIPT, cwd=repo.path, GATE=gate)


def test_an_exit_code(copy: PackageCopy, repo: Clone) -> None:
    """An error of a new kind ends the command so, in words and as JSON; the help and the pages tell of it."""
    error = 'class TooTired(GateError):\n    code = "too_tired"\n    kind = "tired"\n\n\n'
    copy.put("errors.py", error, before="class Stale(GateError):")
    row = '    Meaning(77, "whoever should answer is asleep", "tired"),\n'
    copy.put("cli/__init__.py", row, before="    Meaning(BUG,")
    raised = '    from ..errors import TooTired\n    raise TooTired("it is late", hint="git gate list")\n'
    copy.put("acts/__init__.py", raised, before="    try:\n        gate, tip = find_tip")
    said = copy("show", "abcd", cwd=repo.path, code=77)
    assert said.err == "git gate: it is late\n  git gate list\n"
    assert copy("show", "abcd", "--json", cwd=repo.path, code=77).json["error"]["code"] == "too_tired"
    assert " 77  whoever should answer is asleep" in copy("help", "exit-codes", cwd=repo.path, code=0).out
    assert "| 77 | whoever should answer is asleep |" in documented(copy, "exits", repo)


def documented(copy: PackageCopy, block: str, repo: Clone) -> str:
    """What `docs/generate.py` puts into the pages of it."""
    docs = Path(__file__).parents[2] / "docs"
    script = (
        f"import sys; sys.path.append({str(docs)!r}); import generate; print(generate.blocks()[{block!r}])"
    )
    return copy.script(script, cwd=repo.path)


READ_NAPS = """
import os
from pathlib import Path
from gitgate.context import open_desk
from gitgate.errors import GateError

desk = open_desk(Path.cwd(), os.environ)
try:
    print(desk.settings.number("naps"))
except GateError as wrong:
    print(wrong.message)
desk.close()
"""


@pytest.mark.slow
def test_a_setting(copy: PackageCopy, repo: Clone) -> None:
    """It is read from each of its places, checked, documented; and a slip in its name is told."""
    copy.put(
        "config.py",
        '    Setting("naps", "number", "3", "how often whoever answers may sleep"),\n',
        before='    Setting("pager",',
    )
    assert copy.script(READ_NAPS, cwd=repo.path) == "3\n"
    repo.write(".gitgate.yml", "settings: {naps: 4}\n")
    assert copy.script(READ_NAPS, cwd=repo.path) == "4\n"
    repo.git("config", "gitgate.naps", "5")
    assert copy.script(READ_NAPS, cwd=repo.path) == "5\n"
    assert copy.script(READ_NAPS, cwd=repo.path, GITGATE_NAPS="6") == "6\n"
    assert "GITGATE_NAPS is 'x'" in copy.script(READ_NAPS, cwd=repo.path, GITGATE_NAPS="x")
    assert "how often whoever answers may sleep" in documented(copy, "settings", repo)
    repo.git("config", "gitgate.nap", "5")
    assert "did you mean naps?" in copy("doctor", cwd=repo.path).err


VERB = '''
import click

from ..terminal import Screen, verb


@click.command("nap")
@click.option("--long", is_flag=True, help="Sleep on it.")
@verb
def nap_command(screen: Screen, long: bool) -> None:
    """Say that nobody is there.

    \\b
    git gate nap --long
    """
    screen.emit("nap", {"long": long}, "asleep")
'''


def test_a_verb(copy: PackageCopy, repo: Clone) -> None:
    """It runs in words and as JSON, is helped with and completed, and a slip in its name leads there."""
    copy.add("cli/verbs/nap.py", VERB)
    line = '        "nap": ("verbs.nap", "Say that nobody is there."),\n'
    copy.put("cli/main.py", line, before='        "stop": ("verbs.remarks",')
    assert copy("nap", cwd=repo.path, code=0).out == "asleep\n"
    assert copy("nap", "--long", "--json", cwd=repo.path, code=0).json == {
        "schema": "gitgate.nap/v1",
        "long": True,
    }
    assert "Sleep on it." in copy("nap", "--help", cwd=repo.path, code=0).out
    assert "Say that nobody is there." in copy("--help", cwd=repo.path, code=0).out
    asked = {"_GIT_GATE_COMPLETE": "bash_complete", "COMP_WORDS": "git-gate na", "COMP_CWORD": "1"}
    assert copy(cwd=repo.path, code=0, **asked).out == "plain,nap\n"
    assert "nap" in copy("napp", cwd=repo.path, code=2).err
    assert "git gate nap" in documented(copy, "reference", repo)


def test_how_an_age_is_shown(copy: PackageCopy, repo: Clone) -> None:
    """One function decides it for the list, the letter and the status."""
    copy.put(
        "text/__init__.py",
        'return f"{round(seconds / 60)} min"\n    ',
        before="whole = max(int(seconds), 0)\n",
    )
    gate = ask(copy, repo, "--agent", "builder")
    for words in (("list",), ("show", gate), ("status",)):
        assert "0 min" in copy(*words, cwd=repo.path, code=0).out, words


BELL = '''"""Surfaces: a bell."""

from pathlib import Path

from . import Endpoint, Notification


class Bell:
    kind = "bell"

    def misfit(self, target: Endpoint) -> str:
        return "" if target.words else "bell FILE"

    def lacks(self, target: Endpoint) -> str:
        return ""

    def shown(self, target: Endpoint) -> str:
        return "bell"

    def send(self, target: Endpoint, notification: Notification) -> None:
        Path(target.words).write_text(notification.title, encoding="utf-8")
'''


@pytest.mark.slow
def test_a_way_to_tell_people(copy: PackageCopy, repo: Clone, tmp_path: Path) -> None:
    """An address of its kind is read, listed and tried; one that does not fit says what was expected."""
    copy.add("surfaces/notify/bell.py", BELL)
    copy.put("surfaces/notify/addresses.py", "from .bell import Bell\n", before="from . import Channel")
    copy.put("surfaces/notify/addresses.py", "    Bell(),\n", before="    CHATS,\n")
    repo.git("config", "gitgate.notify", f"bell {tmp_path}/rung")
    assert copy("notify", "--json", cwd=repo.path, code=0).json["addresses"][0]["kind"] == "bell"
    copy("notify", "test", cwd=repo.path, code=0)
    assert (tmp_path / "rung").read_text("utf-8") == "Test: git gate can reach you"
    repo.git("config", "gitgate.notify", "bell")
    assert "expected bell FILE" in copy("notify", cwd=repo.path, code=1).err
    assert copy.touched == {"surfaces/notify/bell.py", "surfaces/notify/addresses.py"}
