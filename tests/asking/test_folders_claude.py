"""The real Claude Code in whatever folder it is started: our hooks run there, each event is judged once, and what would switch them
off is refused or told.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.lab.model import Reply
from support.lab.office import Office, rules

from .conftest import MakeOffice
from .test_claude_page import typed
from .test_real_claude import DATABASE, OVER, TOP, plugin

pytestmark = [pytest.mark.claude, pytest.mark.slow]

RULES = "approvals:\n  - Bash(touch applied*)\n"
ASK = Reply("Asking.", [("AskUserQuestion", {"questions": [DATABASE]})], when="QUESTION")
CALL = Reply("", [("Bash", {"command": "touch applied && echo done >> log"})], when="COMMAND")
NEEDS = Reply('{"status": "needs_input", "question": "Which way?"}', when="LAST WORDS")
WRAP, PLAIN = "git gate wrap -- claude -p", "claude --permission-prompt-tool stdio -p"
CASES = [
    ("sub-folder", "", WRAP),
    ("sub-folder", "project, plugin", WRAP),
    ("sub-folder", "plugin", PLAIN),
    ("worktree", "project", WRAP),
    ("worktree", "project, plugin", PLAIN),
    ("sparse", "project", WRAP),
    ("sparse", "project, plugin", PLAIN),
]


# Each folder, with and without `wrap`.
SIX = [CASES[0], CASES[2], CASES[3], CASES[4], CASES[5], CASES[6]]


def sub_folder(here: Office) -> Path:
    return here.clone.path / "pkg" / "web"


def worktree(here: Office) -> Path:
    place = here.clone.path.parent / "worktree"
    here.clone.git("worktree", "add", "-q", "-b", "beside", str(place))
    return place


def sparse(here: Office) -> Path:
    """Without `.claude`, and without whatever else is no part of one folder."""
    here.clone.git("sparse-checkout", "set", "--cone", "pkg/web")
    return here.clone.path


PLACES = {"sub-folder": sub_folder, "worktree": worktree, "sparse": sparse}


def installed(here: Office, there: str = "", rule: str = RULES) -> None:
    """A repository with rules, and our hooks in the places that are named."""
    (here.clone.path / "pkg" / "web").mkdir(parents=True)
    here.clone.commit("web", **{"pkg/web/page.html": "<p>\n"})
    rules(here.clone, rule)
    if "project" in there:
        assert (
            typed(here, "git gate init --claude && git add .claude && git commit -qm hooks").returncode == 0
        )
    if "plugin" in there:
        for words in (("marketplace", "add", str(TOP)), ("install", "gitgate@gitgate")):
            said = plugin(here.machine.binary, here.machine.home, *words, env=here.env)
            assert said.returncode == 0, said.stdout + said.stderr


def made(here: Office) -> list[str]:
    """How often the guarded command ran, wherever it did."""
    return [
        line
        for log in here.clone.path.parent.glob("**/log")
        if log.is_file()
        for line in log.read_text().split()
    ]


@pytest.mark.parametrize(("place", "there", "line"), CASES)
def test_it_is_gated_wherever_it_is_started(place: str, there: str, line: str, office: MakeOffice) -> None:
    """A question, a guarded command and last words become a gate each, one; approved, the command runs once."""
    here = office(ASK, CALL, NEEDS, OVER)
    installed(here, there)
    folder = PLACES[place](here)
    told = typed(here, f"cd '{folder}' && git gate doctor").stdout
    held = "plugin" in there or (folder / ".claude").exists()
    assert ("plugin's hooks run in every folder" in told, "runs no hook of git gate" in told) == (
        "plugin" in there,
        not held,
    )
    for number, task in enumerate(("QUESTION", "COMMAND", "LAST WORDS"), 1):
        said = typed(here, f"cd '{folder}' && {line} '{task}'")
        assert said.returncode == (8 if line == WRAP else 0), said.stdout + said.stderr
        assert len(here.gates()) == number, (task, said.stderr)
        assert said.stderr.count("to answer: ") == 1 or task == "LAST WORDS", said.stderr
        assert made(here) == []
    call = next(gate for gate in here.gates() if gate["questions"][0]["type"] == "approval")
    here.respond(call["id"], "--approve")
    here.resume(call["id"])
    assert made(here) == ["done"]
    assert len(here.gates()) == 3


@pytest.mark.parametrize("line", ["env A=1 timeout 60 claude", "{binary}"])
def test_however_it_is_called(line: str, office: MakeOffice) -> None:
    """By a path, and behind what starts it; without `-p` as well, since nobody sits before it."""
    here = office(CALL, OVER)
    installed(here)
    line = line.format(binary=here.machine.home / "bin" / "claude")
    said = typed(here, f"cd pkg/web && git gate wrap -- {line} COMMAND")
    assert (said.returncode, len(here.gates()), made(here)) == (8, 1, []), said.stderr


OFF = '{"disableAllHooks": true}'
SWITCHES = {
    "flag": ("--bare", "", ""),
    "given, joined": ("--settings=off.json", "", ""),
    "user": ("", "", "home/.claude/settings.json"),
    "variable": ("", "env CLAUDE_CODE_SIMPLE=1", ""),
}


@pytest.mark.parametrize("way", SWITCHES)
def test_hooks_that_are_off_are_refused_where_calls_need_approval(way: str, office: MakeOffice) -> None:
    """Before anything runs, with what switches them off. Where no call needs approval it runs, and that is said."""
    flags, before, file = SWITCHES[way]
    here = office(CALL, OVER)
    installed(here)
    for place in ("repo/pkg/web/off.json", *filter(None, [file])):
        (here.machine.home.parent / place).parent.mkdir(parents=True, exist_ok=True)
        (here.machine.home.parent / place).write_text(OFF)
    line = f"cd pkg/web && git gate wrap -- {before} claude {flags} -p COMMAND --allowedTools Bash"
    said = typed(here, line)
    assert (said.returncode, made(here), here.gates()) == (4, [], []), said.stderr
    assert "git gate's hooks would not run: " in said.stderr
    assert here.machine.model.requests() == []
    if file:
        again = typed(here, f"""{line} --settings '{{"disableAllHooks": false}}'""")
        assert (again.returncode, len(here.gates()), made(here)) == (8, 1, []), again.stderr
        return
    rules(here.clone, "policy: {}\n")
    said = typed(here, line)
    assert (said.returncode, made(here)) == (0, ["done"]), said.stderr
    assert "git gate's hooks do not run (" in said.stderr
    assert "Claude Code ran without git gate's hooks" in said.stderr


def test_hooks_that_did_not_run_are_told_at_the_end(office: MakeOffice) -> None:
    """Whatever kept them away: where calls need approval the run failed. A command that begins no session is left alone."""
    here = office(CALL, OVER, CALL)
    installed(here)
    # A program that nobody can see through, and that drops our settings.
    script = here.machine.home / "agent.sh"
    script.write_text("exec claude -p COMMAND --allowedTools Bash\n")
    said = typed(here, f"cd pkg/web && git gate wrap -- sh '{script}'")
    assert (said.returncode, made(here)) == (1, ["done"]), said.stderr
    assert "although calls need approval here" in said.stderr
    for words in ("--version", "mcp list"):
        said = typed(here, f"cd pkg/web && git gate wrap -- claude {words}")
        assert (said.returncode, "hooks" in said.stderr) == (0, False), said.stderr
    rules(here.clone, "policy: {}\n")
    said = typed(here, f"cd pkg/web && git gate wrap -- sh '{script}'")
    assert said.returncode == 0
    assert "Claude Code ran without git gate's hooks" in said.stderr


def test_a_persons_settings_stay(office: MakeOffice) -> None:
    """Their hooks run beside ours; their file is as it was, and shown to nobody."""
    here = office(CALL, OVER)
    installed(here)
    hook = {"hooks": [{"type": "command", "command": f"echo theirs >> {here.machine.home}/theirs"}]}
    own = json.dumps({"hooks": {"PreToolUse": [hook]}, "env": {"THEIRS": "secret"}})
    (sub_folder(here) / "own.json").write_text(own)
    said = typed(
        here, "cd pkg/web && git gate wrap -- claude --settings x.json --settings own.json -p COMMAND"
    )
    assert (said.returncode, len(here.gates()), made(here)) == (8, 1, []), said.stderr
    assert (here.machine.home / "theirs").read_text() == "theirs\n"
    assert (sub_folder(here) / "own.json").read_text() == own
    assert list((here.clone.path / ".git/gitgate").glob("settings/*")) == []
    assert list((here.clone.path / ".git/gitgate").glob("wrapped/*")) == []


def test_resumed_our_hooks_stand_beside_this_machines_settings(office: MakeOffice) -> None:
    """What `gitgate.agent.claude.arguments` names is not lost, nor are our hooks; where it switches them off it is refused."""
    here = office(ASK, Reply("Over.", when="SQLite"), ASK, OVER)
    installed(here)
    hook = {"hooks": [{"type": "command", "command": f"echo theirs >> {here.machine.home}/theirs"}]}
    place = here.machine.home / "own.json"
    place.write_text(json.dumps({"hooks": {"Stop": [hook]}}))
    given = json.dumps(["--settings", str(place)])
    here.clone.git("config", "gitgate.agent.claude.arguments", given)
    typed(here, "cd pkg/web && git gate wrap -- claude -p QUESTION")
    gate = here.only()["id"]
    here.respond(gate, "SQLite")
    here.resume(gate)
    assert '\\"Which database?\\"=\\"SQLite\\"' in here.shown
    assert (here.machine.home / "theirs").read_text() == "theirs\n"
    here.clone.git("config", "gitgate.agent.claude.arguments", json.dumps(["--safe-mode"]))
    typed(here, "cd pkg/web && git gate wrap -- claude -p QUESTION")
    again = here.waiting()["id"]
    here.respond(again, "SQLite")
    before = len(here.machine.model.requests())
    refused = here.gate("resume", again, code=None)
    assert refused.code != 0
    assert "cannot be resumed on this machine: git gate's hooks would not run: --safe-mode" in refused.err
    assert len(here.machine.model.requests()) == before


@pytest.mark.parametrize("flags", ["--permission-prompts none", "--restricted"])
def test_what_keeps_it_from_asking_is_said(flags: str, office: MakeOffice) -> None:
    """Its run goes on as it was told to."""
    here = office(OVER)
    installed(here)
    said = typed(here, f"cd pkg/web && git gate wrap -- claude {flags} -p HELLO")
    assert flags in said.stderr.partition("cannot ask by its own tool, or in its shell: ")[2]


@pytest.mark.parametrize(("place", "there", "line"), [CASES[0], CASES[4], CASES[5]])
def test_rules_that_do_not_count_yet_hold_there(
    place: str, there: str, line: str, office: MakeOffice
) -> None:
    """Of a file that lies at the top of the working tree, and nowhere else."""
    here = office(CALL, OVER)
    installed(here, there, "policy: {}\n")
    folder = PLACES[place](here)
    top = folder.parents[1] if place == "sub-folder" else folder
    (top / ".gitgate.yml").write_text(RULES)
    said = typed(here, f"cd '{folder}' && {line} COMMAND --allowedTools Bash")
    assert (said.returncode, len(here.gates()), made(here)) == (8 if line == WRAP else 0, 1, []), said.stderr


LINES = [
    "2>/dev/null touch applied",
    "touch 2>&1 applied",
    "A[0]=1 touch applied",
    "$'touch' applied",
    "function f { touch applied; }; f",
    "find . -maxdepth 0 -exec touch applied ';'",
]


@pytest.mark.parametrize("number", range(len(LINES)))
def test_no_spelling_of_a_line_passes_there(number: int, office: MakeOffice) -> None:
    """However bash lets the guarded command be written, it waits, in each folder and way in turn; what only mentions it runs."""
    place, there, line = SIX[number]
    here = office(
        Reply("", [("Bash", {"command": "echo touch applied > mentioned"})], when="GO"),
        Reply("", [("Bash", {"command": LINES[number]})]),
        OVER,
    )
    installed(here, there)
    folder = PLACES[place](here)
    said = typed(here, f"cd '{folder}' && {line} GO --allowedTools Bash")
    assert (said.returncode, len(here.gates())) == (8 if line == WRAP else 0, 1), said.stdout + said.stderr
    assert ((folder / "mentioned").exists(), (folder / "applied").exists()) == (True, False)


FOR_PEOPLE = [
    'git "ga"te respond 7k2f yes; touch passed',
    "python3 -Im gitgate respond 7k2f yes; touch passed",
    "uvx git-gate respond 7k2f yes; touch passed",
    "git config include.path ../own; touch passed",
    "git config core.hooksPath hooks; touch passed",
    "echo '[gitgate]' >> .GIT/config; touch passed",
]


@pytest.mark.parametrize(("place", "there", "line"), [CASES[0], CASES[4], CASES[5]])
def test_what_is_for_people_is_held_there(place: str, there: str, line: str, office: MakeOffice) -> None:
    """By whatever words: the call is denied, and the agent goes on."""
    calls = [
        Reply("", [("Bash", {"command": command})], when="GO" if not number else "")
        for number, command in enumerate(FOR_PEOPLE)
    ]
    here = office(*calls, OVER)
    installed(here, there)
    folder = PLACES[place](here)
    before = here.clone.git("config", "--list", "--show-scope")
    said = typed(here, f"cd '{folder}' && {line} GO --allowedTools Bash")
    assert not (folder / "passed").exists(), said.stdout
    assert len(here.machine.model.requests()) == len(FOR_PEOPLE) + 1, (said.stdout, said.stderr)
    assert here.gates() == []
    assert here.clone.git("config", "--list", "--show-scope") == before
