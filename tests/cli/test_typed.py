"""Every command in a shell's block of the README and the pages is run: here, by a test that reads the block, or it says why not."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.document import codec
from gitgate.policy import parse_policy
from support.readme import README, dialogue, fenced
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone

TOP = Path(__file__).parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(?:sh|bash)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# Read and run, block by block, by these tests; each names its page, and takes the block by its words.
ELSEWHERE = {
    ("flows.md", "git config gitgate.agent.coder.start"): "tests/flows/test_runs.py",
    ("flows.md", "git gate run flows.py"): "tests/flows/test_runs.py",
    ("flows.md", "git gate signal RUN"): "tests/flows/test_time.py",
    ("README.md", "python3 -m venv"): ".ci/run",
    ("README.md", "git gate init --claude"): "tests/asking/test_readme_claude.py",
    ("README.md", "git gate init --server"): "tests/sharing/test_readme_server.py",
    ("README.md", "git gate init --no-resume"): "tests/sharing/test_readme_server.py",
    ("README.md", "git gate sync"): "tests/sharing/test_readme_server.py",
    ("README.md", "git gate init --github"): "tests/surfaces/github/test_readme_github.py",
    ("policy.md", "git add .gitgate.yml"): "tests/cli/test_typed.py",
    ("servers.md", "git init --bare project.git"): "tests/sharing/test_readme_server.py",
    ("notifications.md", "git config --global --add"): "tests/surfaces/notify/test_sending.py",
    ("notifications.md", "git config --add"): "tests/surfaces/notify/test_sending.py",
    ("listening.md", "git gate listen"): "tests/surfaces/listen/test_screen.py",
    ("web.md", "git config gitgate.web.userHeader"): "tests/surfaces/web/test_serve.py",
    ("web.md", "pipx install"): "tests/surfaces/web/test_serve.py",
    ("claude-code.md", "git gate init --claude"): "tests/asking/test_claude_page.py",
    ("claude-code.md", "git gate wrap"): "tests/asking/test_claude_page.py",
    ("claude-code.md", "claude -p"): "tests/asking/test_claude_page.py",
    ("claude-code.md", "git config gitgate.agent.claude"): "tests/asking/test_claude_page.py",
    ("gitlab.md", "git config gitgate.forge gitlab"): "tests/surfaces/gitlab/test_gitlab_page.py",
    ("gitlab.md", "git gate ask"): "tests/surfaces/gitlab/test_gitlab_page.py",
    ("gitlab.md", "git gate github sweep"): "tests/surfaces/gitlab/test_gitlab_page.py",
    ("gitlab.md", "export GITGATE_WEBHOOK_SECRET"): "tests/surfaces/gitlab/test_gitlab_page.py",
    ("gitlab.md", "git gate init --gitlab"): "tests/surfaces/gitlab/test_gitlab_pipeline.py",
    ("scale.md", "git config --global gitgate.queue.broker"): "tests/resumption/test_queue.py",
    ("scale.md", "#!/bin/sh\n# two-workers"): "tests/resumption/test_queue.py",
    ("scale.md", "#!/bin/sh\n# /usr/local/libexec/resume-gate"): "tests/resumption/test_handed_out.py",
    ("scale.md", "#!/bin/sh\n# /usr/local/libexec/kubernetes-job"): "tests/resumption/test_handed_out.py",
    ("scale.md", "#!/bin/sh\n# /usr/local/libexec/slurm-job"): "tests/resumption/test_handed_out.py",
    ("scale.md", "#!/bin/sh\n# /usr/local/libexec/nomad-job"): "tests/resumption/test_handed_out.py",
    ("claude-code.md", "./scripts/ask-human.sh"): "tests/asking/test_claude_page.py",
}
# By the beginning of a line, and why it cannot be run here.
NOT_RUN = {
    "git gate wrap -- claude": "it needs Claude Code; tests/asking/test_readme_claude.py runs the README's line",
    "pipx ": "it installs a program for the whole account; .ci/run installs the same from a clone",
    "git pull": "it is about a clone of git gate's own",
    "gh ": "it needs github.com; the five steps are run with a stand-in",
    "cd your/": "the folder is the reader's",
    "groupadd ": "it adds accounts to the machine",
    "install -d -g devs": "it needs those accounts",
    "git init --bare --shared=group /srv": "it needs that folder",
    "git config --system": "it changes the machine's configuration",
    "cd /srv/": "it needs that folder",
    "git gate join": "it opens a program on a terminal; tests/cli/test_join.py does",
    "git gate demo": "the whole demonstration; .ci/run runs it",
    "git gate doctor --online": "it needs github.com; the five steps are run with a stand-in",
    "git switch -c login": "it needs github.com; the five steps are run with a stand-in",
    "git gate desk": "it needs a terminal: tests/surfaces/desk/test_terminal.py opens it in one",
    "git gate serve --desk": "it stays until it is ended; tests/surfaces/web/test_serve.py runs it",
    "git gate why src/db.py": "it needs that file; tests/audit/test_origins.py asks for its lines",
    "git add .github": "it commits what the line before wrote; the five steps run both",
}
CODES = {"--wait": 124}
# Of these a shell makes nothing but words.
PLAIN = re.compile(r"git gate [^|&;<>$`()*?\[\]{}~!\\]*")


def commands() -> list[tuple[str, str]]:
    """Page and command, without those of blocks that another test runs."""
    found = []
    for page in PAGES:
        text = re.sub(r"<!-- generated.*?<!-- end -->", "", page.read_text("utf-8"), flags=re.DOTALL)
        for _, block in BLOCK.findall(text):
            lines = re.sub(r"\\\n", "", block).splitlines()
            if not any((page.name, start) in ELSEWHERE for start in starts(block.strip())):
                found += [(page.name, line.strip()) for line in lines if line.strip()]
    return found


def starts(line: str) -> list[str]:
    return [line[:size] for size in range(len(line) + 1)]


def excused(line: str) -> bool:
    return any(line.startswith(start) for start in NOT_RUN)


RUN = [(page, line) for page, line in commands() if not excused(line)]


def test_each_exception_is_one() -> None:
    """A block that is run elsewhere is there, and so is the test, which reads it; no excuse is left over."""
    blocks = [(page.name, block) for page in PAGES for _, block in BLOCK.findall(page.read_text("utf-8"))]
    for (page, start), test in ELSEWHERE.items():
        assert any(name == page and block.strip().startswith(start) for name, block in blocks), (page, start)
        assert (TOP / test).is_file()
    lines = [line for _, line in commands()]
    assert [start for start in NOT_RUN if not any(line.startswith(start) for line in lines)] == []


# A block of these is no command; what stands in one without a language is told by how it begins.
DATA = ("json", "markdown", "mermaid", "python", "text", "xml", "yaml")
# What stands in a longer fence is shown as it is written: a fence within it is no block of the page.
FENCE = re.compile(r"^( *)(```+)(\w*)\n(.*?)^\1\2$", re.MULTILINE | re.DOTALL)
NO_COMMANDS = ("/plugin ", "command=", "# /etc/systemd", "* * * * *", "scout asks:", "answered by Bob")
# What a page tells of a dialogue, and the test that has it said again.
DIALOGUES = {
    "README.md": "tests/render/test_table.py",
    "policy.md": "tests/cli/test_typed.py",
    "servers.md": "tests/sharing/test_readme_server.py",
    "earlier.md": "tests/audit/test_origins.py",
}


def handwritten(page: Path) -> str:
    """A page without what is generated: the examples in it are those of the verbs' help, which tests/cli/test_examples.py runs."""
    return re.sub(r"<!-- generated.*?<!-- end -->", "", page.read_text("utf-8"), flags=re.DOTALL)


def test_no_block_goes_unseen() -> None:
    """Every block is of a language that is run, or holds no command: nothing passes because nobody recognised it."""
    seen = 0
    for page in PAGES:
        text = handwritten(page)
        blocks = FENCE.findall(text)
        assert not re.search(r"^ *```", FENCE.sub("", text), re.MULTILINE), page.name
        for _, _, language, block in blocks:
            if language in ("sh", "bash"):
                seen += 1
            elif language == "console":
                assert page.name in DIALOGUES, page.name
            elif language not in DATA:
                assert block.startswith(NO_COMMANDS), (page.name, block)
    assert seen == sum(len(BLOCK.findall(handwritten(page))) for page in PAGES)
    assert {page for page, _ in commands()} >= {"README.md", "first-gate.md", "github.md", "installing.md"}
    assert len(RUN) > 25


def test_each_block_that_is_run_elsewhere_is_one() -> None:
    """No other block hides behind its first words, and the test reads the page: it has no copy of the line."""
    for (name, start), test in ELSEWHERE.items():
        (page,) = [page for page in PAGES if page.name == name]
        begun = [block for _, block in BLOCK.findall(handwritten(page)) if block.strip().startswith(start)]
        assert len(begun) in (1, 2 if name == "README.md" and "venv" in start else 1), (name, start)
        source = (TOP / test).read_text("utf-8")
        assert "block_after(" in source or "README.md" in source or name in source, (name, test)
    for name, test in DIALOGUES.items():
        assert name in (TOP / test).read_text("utf-8"), (name, test)


SAID = ("git gate runs on Linux",)  # words of a message, which are no command
INLINE = re.compile(r"`(git gate [^`\n]+)`")
NAMED = [(page.name, line) for page in PAGES for line in dict.fromkeys(INLINE.findall(handwritten(page)))]


def test_each_command_in_a_sentence_is_there() -> None:
    """Its verb and its long options: a page names nothing that was renamed."""
    import click

    from gitgate.cli.main import cli as root

    assert len(NAMED) > 100
    wrong = []
    for page, line in NAMED:
        command: click.Command | None = root
        context = click.Context(root)
        words = line.split("|")[0].replace("…", "").split()[2:]
        if not words or words[0].isupper() or line.startswith(SAID):
            continue
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            command = command.get_command(context, words.pop(0)) if words[0].islower() else None
        known = {
            flag for one in (command.params if command else []) for flag in (*one.opts, *one.secondary_opts)
        }
        options = {word.partition("=")[0].rstrip(",.;]") for word in words if word.startswith("--")} - {"--"}
        if command is None or options - known - {"--json", "--help", "--quiet"}:
            wrong.append((page, line, sorted(options - known)))
    assert wrong == [], wrong


@pytest.mark.parametrize(
    ("page", "line"),
    [
        pytest.param(
            *each, id=f"{each[0]}-{each[1][:40]}", marks=[] if each[0] == "README.md" else [pytest.mark.slow]
        )
        for each in RUN
    ],
)
def test_a_command_of_a_page_runs(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone], page: str, line: str
) -> None:
    """As it stands, in a clone where a question waits; only the id is that question's."""
    del page
    clone = clone_of(bare, "repo")
    (clone.path / "notes.md").write_text("x", "utf-8")
    (clone.path / "release.json").write_text('{"type": "object"}', "utf-8")
    clone.git("config", "gitgate.workflows", f"team/git-gate@{'a1' * 20}")
    clone.git("config", "gitgate.template.lgtm", "JWT")
    options = ("-o", "Postgres", "-o", "JWT")
    words = ("--type", "approval") if "--approve" in line else options
    gate = cli.quick("ask", "Which?", *words, "-q", cwd=clone.path, code=0).line
    typed = line.replace("7k2f", gate)
    if "c3ab" in line:
        typed = typed.replace("c3ab", cli.quick("ask", "Which?", "-q", cwd=clone.path, code=0).line)
    expected = next((code for word, code in CODES.items() if word in line), 0)
    if expected == 0 and PLAIN.fullmatch(typed):
        cli.quick(*shlex.split(typed, comments=True)[2:], cwd=clone.path, code=0)
        return
    done = subprocess.run(
        ["timeout", "2" if expected else "40", "sh", "-c", typed],
        cwd=clone.path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expected, done.stdout + done.stderr


@pytest.mark.slow
def test_the_policy_page_in_its_order(cli: Command, bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """Its policy, put where it says, and what three people are told then, word for word but for the ids."""
    page = (TOP / "docs/policy.md").read_text("utf-8")
    people = {name: clone_of(bare, name) for name in ("ada", "bob")}
    for name, clone in people.items():
        clone.git("config", "user.name", name.capitalize())
        clone.git("config", "user.email", f"{name}@example.org")
    ada = people["ada"]
    (ada.path / ".gitgate.yml").write_text(fenced(page, "yaml"), "utf-8")
    said = typed_in(ada.path, fenced(page, "sh"))
    assert "  migrations: ada, bob · 2 who agree\n  quick: anyone\n  default: anyone\n" in said
    ada.git("checkout", "-qb", "login")
    (ada.path / "db").mkdir()
    (ada.path / "db/1.sql").write_text("drop table old;", "utf-8")
    gate = cli.quick("ask", "Drop the old table?", "--type", "approval", cwd=ada.path, code=0).line
    typed_in(people["bob"].path, "git pull -q; git gate sync -q")
    told = dialogue(page)
    assert len(told) == 3
    for who, words, lines in told:
        shown = typed_in(people[who or "ada"].path, words.replace("7k2f", gate), code=0 if who else 4)
        for line in lines:
            assert line.replace("7k2fw9c3ab", gate).replace("7k2f", gate[:4]) in shown.splitlines(), shown


def test_each_wish_of_the_policy_page_is_one(tmp_path: Path) -> None:
    """What it says to write is read, in a rule; and what has no condition under `policy:` as well."""
    page = (TOP / "docs/policy.md").read_text("utf-8")
    wishes = [
        re.findall("`([^`]+)`", row)
        for row in re.findall(r"^\| [^|]+ \| (`.*`) \|$", page.partition("## Where it is")[0], re.MULTILINE)
    ]
    assert len(wishes) == 8
    for number, fields in enumerate([one for wish in wishes for one in alternatives(wish)]):
        text = f"policy:\n  rules:\n    - {{name: wish, {', '.join(fields)}}}\n"
        policy = parse_policy(codec.parse_document(text.encode(), f"wish {number}"))
        assert policy is not None
        assert policy.rules[0].terms != policy.default, fields


def alternatives(fields: list[str]) -> list[list[str]]:
    """Fields of one rule; two of one name are two rules."""
    names = [field.partition(":")[0] for field in fields]
    return [fields] if len(set(names)) == len(names) else [[field] for field in fields]


def typed_in(place: Path, text: str, code: int = 0) -> str:
    done = subprocess.run(
        ["sh", "-c", text], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("place", [".local/bin", "a tool/bin"])
def test_the_manual_is_found_as_the_page_says(repo: Clone, home: Path, place: str) -> None:
    """A link to the command alone, as `uv` leaves it at home, has no page until `init`; `--purge` takes back what that linked."""
    programs = home / place
    programs.mkdir(parents=True)
    (programs / "git-gate").symlink_to(COMMAND)
    env = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{programs}:/usr/bin:/bin",
        "MANPAGER": "cat",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
    }
    env.pop("MANPATH", None)

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=repo.path, env=env, capture_output=True, text=True, check=False
        )

    def found() -> dict[str, str]:
        told = json.loads(said("gate", "doctor", "--json").stdout)
        (one,) = [one for one in told["findings"] if one["name"] == "manual"]
        return dict(one)

    missing = said("gate", "--help")
    assert (missing.returncode, "No manual entry for git-gate" in missing.stderr) == (16, True), (
        missing.stderr
    )
    helped = said("gate", "help")
    assert (helped.returncode, helped.stdout.startswith("Usage: git gate")) == (0, True)
    assert (found()["state"], found()["mend"]) == ("missing", "git gate init")
    page = programs.parent / "share/man/man1/git-gate.1"
    assert f"manual page {page}: git gate --help opens it" in said("gate", "init", "--dry-run").stderr
    assert not page.exists()
    said("gate", "init")
    shown = said("gate", "--help")
    assert (shown.returncode, "GIT-GATE(1)" in shown.stdout.upper()) == (0, True), shown.stderr
    assert found()["state"] == "good"
    assert f"as it was  manual page {page}" in said("gate", "init").stderr
    assert f"undone     manual page {page}" in said("gate", "init", "--remove", "--purge").stderr
    assert not page.is_symlink()


@pytest.mark.slow
def test_a_page_that_an_installer_linked_is_left_to_it(repo: Clone, home: Path) -> None:
    """`pipx` makes a link of its own: `init` makes none, and `--purge` takes none away."""
    programs, page = home / ".local/bin", home / ".local/share/man/man1/git-gate.1"
    programs.mkdir(parents=True)
    page.parent.mkdir(parents=True)
    (programs / "git-gate").symlink_to(COMMAND)
    page.symlink_to(README.parent / "docs/git-gate.1")
    env = {**os.environ, "HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin"}
    for words in (("init",), ("init", "--remove", "--purge")):
        done = subprocess.run(
            ["git", "gate", *words], cwd=repo.path, env=env, capture_output=True, text=True, check=True
        )
        assert "manual page" not in done.stderr
    assert page.is_file()
