"""The command line takes an answer from the person's editor, and never loses what was written there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Ask = Callable[..., str]
Editor = Callable[[str], Path]


def drafts(repo: Clone) -> list[Path]:
    return sorted((repo.path / ".git" / "gitgate" / "drafts").glob("*"))


def test_the_question_stands_above_the_line(cli: Command, repo: Clone, ask: Ask, editor: Editor) -> None:
    """As comments; what is written below is the answer, Markdown headings included; the draft is gone."""
    gate = ask("What shall we do?", "--context", "It is late.\n# not a comment of yours")
    seen = editor('printf "# Plan\\n\\nGo home.\\n" >> "$1"')
    cli.quick("respond", gate, "--edit", code=0)
    assert cli.quick("check", gate).out == "# Plan\n\nGo home.\n"
    above = seen.read_text(encoding="utf-8").splitlines()
    assert all(line.startswith("#") for line in above if line)
    assert "#   What shall we do?" in above
    assert ">8" in above[-1] or not above[-1]
    assert drafts(repo) == []


@pytest.mark.parametrize("script", ["", 'sed -i "s/zzz//" "$1"', 'echo "   " >> "$1"', ': > "$1"'])
def test_an_empty_answer_is_refused(cli: Command, repo: Clone, ask: Ask, editor: Editor, script: str) -> None:
    """Closing the editor unchanged, blank or emptied records nothing."""
    gate = ask("What?")
    editor(script)
    said = cli.quick("respond", gate, "--edit", code=2)
    assert "nothing is recorded" in said.err
    assert cli.quick("check", gate).code == 8
    assert drafts(repo) == []


def test_a_file_without_the_line_counts_too(cli: Command, ask: Ask, editor: Editor) -> None:
    """An editor that replaces the whole file has said enough."""
    gate = ask("Which?", "-o", "JWT", "-o", "Sessions")
    editor('echo "jwt" > "$1"')
    cli.quick("respond", gate, "-e", code=0)
    assert cli.quick("check", gate).line == "JWT"


def test_several_questions_are_sections(cli: Command, ask_two: str, editor: Editor) -> None:
    """Each answer stands after its question's key."""
    editor('sed -i -e "s/^db:.*/db: sqlite/" -e "s/^go:.*/go:\\nyes/" "$1"')
    cli.quick("respond", ask_two, "--edit", code=0)
    assert cli.quick("check", ask_two).out == "db: SQLite\ngo: approved\n"


def test_a_form_is_its_fields(cli: Command, ask_form: str, editor: Editor) -> None:
    """A section for each field; those left empty are left out."""
    editor('sed -i -e "s/^region:.*/region: us/" -e "s/^count:.*/count: 2/" "$1"')
    cli.quick("respond", ask_form, "--edit", code=0)
    assert cli.quick("check", ask_form).line == '{"region": "us", "count": 2}'


def test_an_answer_that_does_not_fit_is_kept(cli: Command, repo: Clone, ask: Ask, editor: Editor) -> None:
    """Without a terminal it is refused; its place is said, and the next --edit goes on with it."""
    gate = ask("Which?", "-o", "JWT", "-o", "Sessions")
    editor('echo "JTW" >> "$1"')
    said = cli.quick("respond", gate, "--edit", code=2)
    (draft,) = drafts(repo)
    assert "did you mean JWT?" in said.err
    assert str(draft) in said.err
    seen = editor('sed -i "s/^JTW/JWT/" "$1"')
    cli.quick("respond", gate, "--edit", code=0)
    assert "\nJTW\n" in seen.read_text(encoding="utf-8")
    assert cli.quick("check", gate).line == "JWT"


def test_at_a_terminal_it_is_offered_again(
    pty_cli: Callable[..., Terminal], cli: Command, ask: Ask, editor: Editor
) -> None:
    """With the text as it was, and the reason above it."""
    gate = ask("Which?", "-o", "JWT", "-o", "Sessions")
    seen = editor('grep -q "^JTW" "$1" && sed -i "s/^JTW/JWT/" "$1" || echo JTW >> "$1"')
    terminal = pty_cli("respond", gate, "--edit")
    terminal.expect("did you mean JWT?")
    terminal.expect("your text is kept in")
    terminal.expect("[e/q]")
    terminal.line("e")
    terminal.finish(code=0)
    assert '# NOT RECORDED: answer: "JTW" is not one' in seen.read_text(encoding="utf-8")
    assert cli.quick("check", gate).line == "JWT"


def test_a_text_that_cannot_be_recorded_is_kept(cli: Command, repo: Clone, ask: Ask, editor: Editor) -> None:
    """Somebody else answers while the editor is open: exit 5, and the draft stays."""
    gate = ask("What?")
    editor(f'git-gate respond {gate} "me first" -q\necho "a long answer" >> "$1"')
    said = cli("respond", gate, "--edit", code=5)
    (draft,) = drafts(repo)
    assert "a long answer" in draft.read_text(encoding="utf-8")
    assert str(draft) in said.err
    assert cli.quick("check", gate).line == "me first"


def test_an_editor_that_fails_writes_nothing(cli: Command, ask: Ask, editor: Editor) -> None:
    """As with a commit message: a failing editor ends it."""
    gate = ask("What?")
    editor('echo "half" >> "$1"; exit 3')
    assert "exit 3" in cli.quick("respond", gate, "--edit", code=1).err
    assert cli.quick("check", gate).code == 8


def test_what_was_given_is_where_it_begins(cli: Command, ask: Ask, editor: Editor) -> None:
    """`respond ID TEXT --edit` opens with the text."""
    gate = ask("What?")
    editor('sed -i "s/^draft$/final/" "$1"')
    cli.quick("respond", gate, "draft", "--edit", code=0)
    assert cli.quick("check", gate).line == "final"


def test_git_chooses_the_editor(
    cli: Command, repo: Clone, ask: Ask, editor: Editor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """core.editor is used where GIT_EDITOR is not set, arguments and blanks in its name included."""
    gate = ask("What?")
    editor('[ "$1" = --flag ] && echo "from core.editor" >> "$2"')
    monkeypatch.delenv("GIT_EDITOR")
    repo.git("config", "core.editor", f"'{tmp_path / 'my editor'}' --flag")
    cli.quick("respond", gate, "--edit", code=0)
    assert cli.quick("check", gate).line == "from core.editor"


def test_no_editor_and_no_terminal(cli: Command, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is opened where nobody sits."""
    gate = ask("What?")
    for name in ("GIT_EDITOR", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    assert "--edit needs a terminal" in cli.quick("respond", gate, "--edit", code=2).err
