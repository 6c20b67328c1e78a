"""Documentation: what is generated says what the code says, and reads as a page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from generator import manual, markdown, tree

from gitgate.agents.agent import Start
from gitgate.agents.command import placeholders
from gitgate.cli import Meaning
from gitgate.config import SETTINGS
from gitgate.model import RUN_STATES, RUN_TABLE, STATES, TABLE
from gitgate.version import REPOSITORY

DOCS = Path(__file__).parents[1] / "docs"
AGENCY = DOCS.parent / "gitgate" / "gates" / "agency.py"
EXITS = (Meaning(0, "done"), Meaning(8, "still waiting"))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", is_flag=True, help="As JSON.")
def gate(json: bool) -> None:
    """All of it."""


@gate.command()
@click.argument("prompt", required=False)
@click.option(
    "-t", "--type", "kind", default="text", show_default=True, help="What kind of answer; it's checked."
)
@click.option("--times", type=click.IntRange(1, 3), help="How often.")
@click.option("--json", is_flag=True, help="As JSON.")
def ask(prompt: str | None, kind: str, times: int, json: bool) -> None:
    """Open a gate. Prints its id.

    \b
    .first:  one
    'second: two
    """


@gate.group()
def policy() -> None:
    """Who may answer."""


@policy.command()
@click.option("--json", is_flag=True, help="As JSON.")
def check(json: bool) -> None:
    """Explain it."""


@gate.command(hidden=True)
def hook() -> None:
    """Called by shims."""


VERBS = tree.read(gate, {"For the agent": ["ask"]})
ROOT = tree.root(gate)


def test_generated_documentation_is_up_to_date() -> None:
    """Every page in `docs/` has what the code says now."""
    said = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.slow
def test_the_address_is_set_in_one_place(tmp_path: Path) -> None:
    """Changed there and carried on, it is the new one wherever the old one stood, and nothing but addresses changed."""
    top = DOCS.parent
    for name in ("docs", "gitgate", "plugin"):
        shutil.copytree(top / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "commit"))
    for name in ("pyproject.toml", "mkdocs.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(top / name, tmp_path / name)
    version = tmp_path / "gitgate" / "version.py"
    version.write_text(version.read_text().replace(REPOSITORY, "team/gate.tool"))
    before = {
        path: path.read_text()
        for path in tmp_path.rglob("*")
        if path.suffix in (".md", ".yml", ".toml", ".1")
    }
    for arguments in ([], ["--check"]):
        done = subprocess.run(
            [sys.executable, tmp_path / "docs/generate.py", *arguments],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    changed = {path for path, text in before.items() if path.read_text() != text}
    assert all(path.read_text() == before[path].replace(REPOSITORY, "team/gate.tool") for path in changed)
    names = {str(path.relative_to(tmp_path)) for path in changed}
    assert {
        "pyproject.toml",
        "gitgate/texts/workflows/gitgate.yml",
    } <= names
    assert [path for path in before if REPOSITORY in path.read_text()] == []


def test_the_install_line_works_from_a_clone() -> None:
    """It installs what the line of the demonstration installs, which CI runs in a fresh clone; no page begins with an index."""
    top = DOCS.parent
    readme = (top / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^pipx install (\S+)", readme, re.MULTILINE)
    demo = re.search(r"pip install -q (\S+) && \.venv/bin/git-gate demo$", readme, re.MULTILINE)
    assert demo is not None
    assert line == demo[1] == "'.[forms]'"
    lines = [
        (path.name, words)
        for path in typed_from()
        for words in re.findall(r"(?:pipx|uv tool) install [^#`\n]*|uvx .*", path.read_text("utf-8"))
    ]
    assert len(lines) > 4
    assert [one for one in lines if "git-gate" in one[1] or "gitgate" in one[1]] == []


def typed_from() -> list[Path]:
    """Pages that a reader types from."""
    top = DOCS.parent
    return [
        top / "README.md",
        top / "CONTRIBUTING.md",
        *sorted(DOCS.glob("*.md")),
        *top.glob("plugin/**/*.md"),
    ]


def test_no_page_has_an_owner_to_fill_in() -> None:
    """What is typed works as it stands: the address of a repository that nobody has named is no line of a page."""
    named = [path.name for path in typed_from() if "OWNER/git-gate" in path.read_text("utf-8")]
    assert named == []


def test_settings_with_a_name_in_them_are_documented() -> None:
    """Each that an agent's adapter is given, and each placeholder of its commands."""
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    read = re.findall(
        r'setting_parts\(name, "(\w+)"|said\.get\("(\w+)"\)|switched_on\(said, "(\w+)"\)',
        AGENCY.read_text("utf-8"),
    )
    names = {name for found in read for name in found if name}
    assert {"resume", "join", "stdin", "projectsettings"} <= names
    told = page.casefold()
    assert [name for name in sorted(names) if f".{name}`" not in told] == []
    start = Start("7k2f", Path(), Path())
    assert [name for name in placeholders(start) if f"`{{{name}}}`" not in page] == []


def test_a_tree_is_read_whole() -> None:
    """A group's commands have their full names; hidden ones stay hidden; usage and options are click's own."""
    assert [(verb.name, verb.usage) for verb in VERBS] == [
        ("ask", "git gate ask [OPTIONS] [PROMPT]"),
        ("policy check", "git gate policy check [OPTIONS]"),
    ]
    assert (ROOT.usage, ROOT.text) == ("git gate [OPTIONS] COMMAND [ARGS]...", "All of it.")
    assert [entry.written for entry in VERBS[0].entries] == [
        "-t, --type TEXT",
        "--times N",
        "--json",
        "-h, --help",
    ]


def test_what_every_command_has_is_told_once() -> None:
    """A shared option stands in front, not under each command."""
    text = markdown.reference(ROOT, VERBS)
    assert [entry.written for entry in tree.shared(VERBS)] == ["--json", "-h, --help"]
    assert text.count("`--json`") == 1
    assert "\n\n--json, -h: also after any command.\n\n" in text
    assert "## For the agent\n\n### git gate ask" in text
    assert "```\n.first:  one\n'second: two\n```" in text


def test_the_diagram_has_every_state() -> None:
    """Each state is in it, and those that nothing leaves lead to the end."""
    drawn = markdown.diagram(TABLE)
    assert all(re.search(rf"\b{state}\b", drawn) for state in STATES)
    assert "[*] --> awaiting: opened" in drawn
    assert [line.split()[0] for line in drawn.splitlines() if line.endswith("--> [*]")] == markdown.finals(
        TABLE
    )


def test_the_diagram_of_runs_has_every_state() -> None:
    """Each leads to the end, or is left by an event."""
    drawn = markdown.diagram(RUN_TABLE)
    assert all(re.search(rf"\b{state}\b", drawn) for state in RUN_STATES)
    assert markdown.finals(RUN_TABLE) == ["completed", "stuck", "failed", "stopped"]


def test_every_row_of_the_table_is_told() -> None:
    """As many lines as rows, each with its own words."""
    lines = markdown.events(TABLE).splitlines()[2:]
    assert len(lines) == len(TABLE)
    assert all(row.why in line for row, line in zip(TABLE, lines, strict=True))


def test_a_setting_of_power_names_no_variable() -> None:
    """The table of settings shows where each may be set."""
    lines = markdown.settings(SETTINGS).splitlines()[2:]
    assert [("| – |" in line.split("`", 2)[2][:8]) for line in lines] == [one.power for one in SETTINGS]


def test_a_bar_stays_in_its_cell() -> None:
    """A cell that holds a bar does not become two."""
    assert markdown.table(["a"], [["x|y"]]).splitlines()[-1] == "| x\\|y |"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a-b", "a\\-b"),
        ("it's", "it\\(aqs"),
        ("C:\\x", "C:\\ex"),
        ("2 × 3", "2 \\[u00D7] 3"),
        ("`x`", "\\(gax\\(ga"),
    ],
)
def test_roff_takes_text_literally(text: str, escaped: str) -> None:
    """Hyphens, quotes, backslashes and letters beyond ASCII come out as written."""
    assert manual.plain(text) == escaped


def test_no_line_of_text_is_taken_for_a_request() -> None:
    """A line that begins with a dot or a quote is text; every other line that does is a request of ours."""
    page = manual.page(ROOT, VERBS, SETTINGS, EXITS, "1.0")
    assert "\\&.first:" in page
    assert "\\(aqsecond:" in page
    requests = {line.split(" ")[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests <= {'.\\"', ".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".BR", ".nf", ".fi", ".RS", ".RE"}


def test_the_manual_page_has_its_sections() -> None:
    """What a reader of manual pages looks for is there, in the order they know."""
    sections = re.findall(r"^\.SH (.*)", manual.page(ROOT, VERBS, SETTINGS, EXITS, "1.0"), re.MULTILINE)
    known = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "CONFIGURATION", "EXAMPLES", "SEE ALSO"]
    assert [section for section in sections if section in known] == known


def test_each_symptom_is_something_that_is_said() -> None:
    """What the page of troubles names is a state, or stands in a message of ours, but for what git itself says."""
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "troubleshooting.md").read_text("utf-8"), re.MULTILINE)
    named = [word for row in rows for word in re.findall("`([^`]+)`", row)]
    assert len(named) > 14
    said = "".join(path.read_text("utf-8") for path in (DOCS.parent / "gitgate").rglob("*.py"))
    pieces = [piece.strip() for word in named for piece in re.split("7k2f…?", word) if piece.strip()]
    by_git = ["No manual entry for git-gate"]
    assert [piece for piece in pieces if piece not in said and piece not in by_git] == []


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)|(?:src|srcset)=\"([^\"]+)\"")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """To a file of this repository, or to an address."""
    found = [word for pair in LINK.findall(page.read_text(encoding="utf-8")) for word in pair if word]
    inside = [word for word in found if "://" not in word and not word.startswith("mailto:")]
    assert [word for word in inside if not (page.parent / word).exists()] == []
    # The site is made of docs/ alone.
    assert page.parent != DOCS or not any(word.startswith("..") for word in inside)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_are_short(page: Path) -> None:
    """Under 25 words on average, in every page; a sentence ends at its full stop, and a row of a list is one."""
    text = re.sub(
        r"```.*?```|<!-- generated.*?<!-- end -->|`[^`]*`|\|.*\|",
        "x",
        page.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    sentences = [
        one.split() for one in re.split(r"[.!?](?:[\s*)]|$)|\n\n|\n\s*- ", text) if len(one.split()) > 2
    ]
    if sentences:
        assert sum(map(len, sentences)) / len(sentences) < 25
