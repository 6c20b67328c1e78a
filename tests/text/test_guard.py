"""Guard: which commands and files of an agent are refused, and which are nobody's business."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.text.shell import asks, files_read, plain_asking, plain_words, why_not_run
from support import PATIENCE

REFUSED = [
    "git gate respond 7k2f SQLite",
    "git-gate respond --approve",
    "/usr/local/bin/git-gate respond x y",
    "git -C /somewhere -c a.b=c gate --json stop 7k2f --reason x",
    "cd x && FOO=1 git gate signal 7k2f --status CONTINUE",
    "true; (git gate join 7k2f)",
    "env -u CLAUDECODE -u CLAUDE_CODE_SESSION_ID git gate respond 7k2f yes",
    "sudo -u ann git gate respond 7k2f yes",
    "bash -lc 'git gate respond 7k2f yes'",
    "sh -c \"sh -c 'git gate stop 7k2f'\"",
    "echo $(git gate respond 7k2f yes)",
    "echo `git gate respond 7k2f yes`",
    "eval git gate respond 7k2f yes",
    "python3 -P -m gitgate respond 7k2f yes",
    'python -c \'import gitgate; gitgate.respond("7k2f", "yes")\'',
    "git gate edit 7k2f --timeout 1s",
    "git gate \\\n respond 7k2f yes",
    "git gate 'respond' 7k2f",
    "if true; then git gate respond 7k2f yes; fi",
    "git -c alias.x='gate respond' x 7k2f",
    "git push origin HEAD:refs/hitl/open/7k2fw3x9ab",
    "git push origin +refs/hitl/*:refs/hitl/*",
    "git update-ref refs/hitl/open/7k2fw3x9ab HEAD",
    "echo 'update refs/hitl/open/7k2fw3x9ab x' | git update-ref --stdin",
    "git symbolic-ref refs/hitl/open/x refs/heads/main",
    "rm -rf .git/refs/hitl",
    "cp x .git/refs/hitl/open/7k2fw3x9ab",
    "echo x > .git/refs/hitl/open/7k2fw3x9ab",
    "rm .git/gitgate/asked/x",
    "echo '[gitgate]' >> .git/config",
    "cat x > /r/.git/hooks/post-receive",
    "sed -i s/a/b/ .git/config",
    "git config gitgate.approvalDefaults true",
    "git config --global --add gitgate.agent.claude.program evil",
    "git config set gitgate.publishWork true",
    "git config --unset gitgate.initialised",
    "git gate respond 'unclosed",
    'git "ga"te respond 7k2f yes',
    "git ga\\\nte respond 7k2f",
    "g$'i't gate respond 7k2f",
    "git $'\\x67ate' respond 7k2f",
    "git ga$X respond 7k2f",
    "git gate $VERB 7k2f yes",
    "git $X respond 7k2f",
    "$GIT gate respond 7k2f yes",
    "v=respond; git gate $v 7k2f",
    "{git,gate,respond,7k2f}",
    "git {gate,respond} 7k2f",
    "python3 -Im gitgate respond 7k2f yes",
    "python3 -mgitgate respond 7k2f",
    "python3.12 -P -Im gitgate stop 7k2f",
    "pypy3 -m gitgate respond x",
    "python3 $(which git-gate) respond 7k2f",
    "uvx git-gate respond 7k2f yes",
    "uvx --from git-gate[forms] git-gate respond 7k2f",
    "uv tool run git-gate respond 7k2f",
    "pipx run git-gate respond 7k2f",
    "uv run git gate respond 7k2f",
    "2>/dev/null git gate respond 7k2f",
    "find . -exec git gate respond 7k2f \\;",
    "trap 'git gate respond 7k2f' EXIT",
    "echo 'git gate respond 7k2f yes' | sh",
    "xargs git gate respond",
    'eval "$(echo git gate respond 7k2f)"',
    "bash <<< 'git gate respond 7k2f'",
    "git config core.hooksPath /tmp/x",
    "git config --local include.path ../evil",
    "git config set core.hookspath x",
    "git config 'includeIf.gitdir:/.path' x",
    "git config gitgate.remote get",
    "git config --rename-section x gitgate",
    "GIT_EDITOR='sed -i s/a/b/' git config -e",
    "git config core.$X /tmp/x",
    "git -C sub config core.hooksPath x",
    'git "con"fig core.hooksPath x',
    "echo x >> .GIT/config",
    "cp x .Git/hooks/pre-push",
    "tee -a .git/./config",
    "ln -s .git g",
    "ln -s .git/config c",
    "mv .git/ g",
    "cd .git && echo x >> config",
    "cd .git; sed -i s/a/b/ config",
    "pushd .git/hooks && cp x pre-push",
    'echo x >> "$(git rev-parse --git-dir)/config"',
    "cp x $(git rev-parse --git-path .)/hooks/",
    "echo x 2>&1 >>.git/config",
    "cat x >| .git/config",
    'echo x >> .g"it"/config',
    "echo x >> .{git,x}/config",
    "dd of=.git/config",
    "echo x >> link",
    "sed -i s/a/b/ sub/link",
]
LEFT_ALONE = [
    "ls", "git status", "git gate ask 'Should I respond?'", "git gate check 7k2f", "git gate list", "git gate wait 7k2f",
    "git gate withdraw 7k2f --reason done", "git gate ask 'x' --context 'git gate respond is for people'",
    "git log refs/hitl/open/7k2f", "git for-each-ref refs/hitl", "git show refs/hitl/open/7k2f:question.yaml",
    "git config --get gitgate.remote", "git config --get-regexp '^gitgate'", "git config user.name x",
    "git commit -m 'Teach git gate respond a flag'", "git push origin main", "python respond.py", "make gate",
    "git config --get core.hooksPath", "git config get include.path", "git config core.editor vim", "git config \"$K\"", "cd .git && ls", "git checkout $BRANCH", "git log $X -- gate",
    "ls -la .git/", "cp .gitignore x", "git commit -m \"$(cat <<'E'\nTeach git gate respond\nE\n)\"", "cat link", "head -3 sub/link", "./git-gate-docs respond", "uvx ruff check gate", "python3 -m pytest -k gate",
    "git gate status", "cat .git/HEAD", "cat .git/config > /tmp/x", "ls .git/hooks/", "git gate show 7k2f --diff",
]  # fmt: skip


@pytest.mark.parametrize("command", REFUSED)
def test_an_agent_does_not_answer(command: str) -> None:
    """However a command is wrapped, one that answers, ends or changes gates or grants power is refused, with a word on what to do."""
    assert why_not_run("Bash", {"command": command}, linked)


def linked(path: str) -> str:
    """A path with its links followed, as if this one led to git's configuration."""
    return path.replace("link", ".git/config")


@pytest.mark.parametrize("command", LEFT_ALONE)
def test_other_commands_are_left_alone(command: str) -> None:
    """Asking, reading, and what only speaks of answering."""
    assert why_not_run("Bash", {"command": command}, linked) == ""


def test_links_lead_where_they_lead(tmp_path: Path) -> None:
    """A file is what its links lead to, and its name in capital letters is the same file on some systems."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "g").symlink_to(".git")
    (tmp_path / "c").symlink_to(".git/config")
    for path in ("g/config", "c", "g/hooks/pre-push", "./g/../c", ".GIT/config", ".git//config"):
        place = str(tmp_path / path)
        assert why_not_run("Write", {"file_path": place}, os.path.realpath), path
        assert why_not_run("Bash", {"command": f"echo x >> {place}"}, os.path.realpath), path
        assert why_not_run("Bash", {"command": f"cp x {place}"}, os.path.realpath), path
        assert why_not_run("Bash", {"command": f"cat {place}"}, os.path.realpath) == "", path


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/r/.git/refs/hitl/open/7k2fw3x9ab", True), (".git/packed-refs", True), ("/r/.git/gitgate/asked/x", True),
        ("/r/.git/config", True), ("/r/.git/hooks/post-receive", True), ("/r/.git/worktrees/a/refs/hitl/x", True),
        ("/r/src/config", False), ("/r/.github/workflows/x.yml", False), ("/r/.git/COMMIT_EDITMSG", False), ("/r/hooks/x", False),
    ],
)  # fmt: skip
def test_git_s_own_files_are_not_written(path: str, refused: bool) -> None:
    """Records, and what says who may do what."""
    for tool in ("Write", "Edit", "MultiEdit"):
        assert bool(why_not_run(tool, {"file_path": path, "content": ""})) is refused
    assert why_not_run("Read", {"file_path": path}) == ""


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("git gate ask 'Which?' -o A -o B", True), ("git-gate ask x", True), ("cd x && git gate ask x && echo", True),
        ("ID=$(git gate ask x)", True), ("git gate ask x --wait", False), ("git gate ask --wait-for 3m x", False),
        ("git gate ask --wait-for=3m x", False), ("git gate ask --help", False), ("git gate list", False),
        ("echo git gate ask", False), ("grep -r 'git gate ask' .", False), ("", False),
    ],
)  # fmt: skip
def test_asking_in_a_shell_is_told_from_waiting(command: str, wanted: bool) -> None:
    """Only a command that asks and exits ends a run."""
    assert asks(command) is wanted


@given(st.text(max_size=300) | st.text("git ate-respond'\"$(`\n;&|\\", max_size=200))
def test_nothing_breaks_the_reading(text: str) -> None:
    """Any text can be judged."""
    assert isinstance(why_not_run("Bash", {"command": text}), str)
    assert isinstance(asks(text), bool)


@given(
    st.dictionaries(
        st.text(max_size=9), st.none() | st.integers() | st.lists(st.text(max_size=3), max_size=2)
    )
)
def test_what_is_no_command_is_no_error(given_: dict[str, object]) -> None:
    """A call of another shape is not ours to judge here."""
    for tool in ("Bash", "Write", "", "mcp__x__y"):
        assert why_not_run(tool, {**given_, "command": 3, "file_path": None}) == ""


def test_a_long_command_is_read_quickly() -> None:
    """A command of a megabyte is seen through like a short one."""
    assert why_not_run("Bash", {"command": "echo " + "x " * 400_000 + "; git gate respond 7k2f yes"})


PLAIN = {
    'git gate ask "Which database?" -o Postgres -o "SQLite=one file"': ("ask", "Which database?", "-o", "Postgres", "-o", "SQLite=one file"),
    "git-gate check 7k2f": ("check", "7k2f"),
    "git gate wait 7k2f --for 30m\n": ("wait", "7k2f", "--for", "30m"),
    "git gate ask 'Is `x` $5; or \"y\" & z?'": ("ask", 'Is `x` $5; or "y" & z?'),
    'git gate ask "say \\"yes\\" for \\$5 \\d"': ("ask", 'say "yes" for $5 \\d'),
    "git gate ask 'two\nlines' --context @notes.md": ("ask", "two\nlines", "--context", "@notes.md"),
    "git gate ask don\"'\"t": ("ask", "don't"),
    "git gate ask 'x 2>&1' 2>&1": ("ask", "x 2>&1"),
    "git gate check 7k2f  2>&1\n": ("check", "7k2f"),
}  # fmt: skip
NOT_PLAIN = [
    "git gate respond 7k2f yes", "git gate withdraw 7k2f --reason x", "git gate", "git", "", "git status",
    "git gate ask x; touch pwned", "git gate ask x && touch pwned", "git gate ask x | tee f", "git gate ask x > f",
    "git gate ask x &", "git gate ask x\ntouch pwned", 'git gate ask "$(touch pwned)"', "git gate ask `touch pwned`",
    'git gate ask "`touch pwned`"', 'git gate ask "$SECRET"', "git gate ask $SECRET", "git gate ask <(touch pwned)",
    "git gate ask x <<< y", "git gate ask <<E\nE", "X=1 git gate ask x", "env git gate ask x", "sudo git gate ask x",
    "sh -c 'git gate ask x'", "git -c core.sshCommand=evil gate ask x", "git -C /elsewhere gate ask x", "git --git-dir=x gate ask",
    "git-gate -C /elsewhere ask x", "git gate -C /elsewhere ask x", "git gate ask x -C/elsewhere", "/tmp/git-gate ask x", "./git gate ask x",
    "git gate ask x --include .env", "git gate ask x --include=.env", "git gate ask x --mcp-config m.json", "git gate ask --cwd / x",
    "git gate ask *", "git gate ask ~", "git gate ask {a,b}", "git gate ask a?", "git gate ask [a]", "git gate ask x # y",
    "git gate ask =ls", "git gate ask \\\n x", "git gate ask 'x", 'git gate ask "x', "git gate ask x\\;", "git gate ask x\r\ntouch y",
    "git gate ask x 2>&1 | tee f", "git gate ask x 2>&1 >f", "git gate ask 'x 2>&1", "git gate ask x\\ 2>&1", "git gate ask x 3>&1",
    "git gate ask x 2>&1; touch y", "git gate ask x2>&1", "git gate ask x 2>f", "git gate ask x # 2>&1", "git gate ask x &>f 2>&1",
    "git gate ask x\x00", "git gate ask \u00a0x", "! git gate ask x", "python -m gitgate ask x", "git gate ask x" + " y" * 40_000,
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_call_is_read_as_a_shell_reads_it(text: str) -> None:
    """Words and quotes, and nothing else."""
    assert plain_asking(text) == PLAIN[text]


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_a_line_that_may_do_more_is_not_plain(text: str) -> None:
    """Another command, an expansion, a redirection, a variable or a setting before it, another repository, what looks secret."""
    assert plain_asking(text) == ()


@given(st.text(st.sampled_from("ab '\"\\$;&|\n`(){}*~#=-@"), max_size=24))
def test_plain_words_are_what_a_shell_makes_of_a_line(text: str) -> None:
    """Whatever is plain, a real shell takes it for one command with these very words."""
    words = plain_words(text)
    if words:
        said = subprocess.run(
            ["sh", "-c", f"set -- {text}\nprintf '%s\\0' \"$@\""],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert said.stdout.split("\0")[:-1] == list(words)


def test_the_files_that_a_question_reads() -> None:
    """Each that a flag names, also behind an equals sign; words are words."""
    words = (
        "ask",
        "@x",
        "--attach",
        "a",
        "--file=b",
        "--context=@c",
        "--context",
        "d",
        "--schema",
        "e",
        "-o",
        "@f",
    )
    assert files_read(words) == ["a", "b", "c", "e"]
