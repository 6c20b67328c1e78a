"""Surfaces: the pages in a real browser, Chromium without a window: by keys alone, narrow, dark, without JavaScript; and looked over by axe.

GITGATE_TEST_AXE is the folder of the npm package axe-core; Playwright drives the `chromium` that is on PATH.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support import PATIENCE
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import Served, server

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.browser, pytest.mark.timeout(600)]

AXE = os.environ.get("GITGATE_TEST_AXE", "")  # read before a test's seal takes it away
NOT_SET = "GITGATE_TEST_AXE names no folder with axe.min.js: see browser_tests in .ci/run"
MOST_TABS = 60
BAD = '"><script>document.title="taken"</script><img src=x onerror=alert(1)>'
BROKEN_CELLS = """
[...document.querySelectorAll("td:not(:last-child)")].filter(cell => {
  const words = document.createRange();
  words.selectNodeContents(cell);
  return new Set([...words.getClientRects()].map(line => Math.round(line.top / 8))).size > 1;
}).map(cell => cell.innerText)
"""
FORM = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "enum": ["eu", "us"]},
        "replicas": {"type": "integer"},
        "why": {"type": "string"},
    },
    "required": ["region", "replicas"],
}
FLOW = """
import gitgate


@gitgate.flow
def release():
    return gitgate.wait(gitgate.ask("Deploy it?", type="approval")).approved
"""


@dataclass
class Window:
    """A page of a browser, and what it complained of."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE * 1000)
        self.page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type == "error" else None
        )
        self.page.on("pageerror", lambda wrong: self.complaints.append(str(wrong)))
        self.page.on("dialog", self.dismiss)

    def dismiss(self, dialog: Any) -> None:
        self.complaints.append("a dialog")
        dialog.dismiss()

    def focus(self, selector: str) -> None:
        """By the Tab key alone, from where the focus is."""
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
                return
        pytest.fail(f"{selector} is not reached by Tab on {self.page.url}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def follow(self, selector: str) -> None:
        """Enter on a link or a button, and the page that it leads to."""
        self.focus(selector)
        with self.page.expect_navigation():
            self.press("Enter")

    @property
    def is_too_wide(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))

    @property
    def broken_cells(self) -> list[str]:
        """What is short in a table, a time, an id or a name, and does not stand on one line."""
        return list(self.page.evaluate(BROKEN_CELLS))

    def findings(self) -> list[str]:
        """What axe has to say, by its rules for WCAG 2.2 AA and for good practice."""
        source = Path(AXE) / "axe.min.js"
        if not AXE or not source.is_file():
            pytest.fail(NOT_SET)
        self.page.evaluate(source.read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [f"{one['id']}: {node['html']}" for one in found["violations"] for node in one["nodes"]]


Open = Callable[..., Window]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program is not None, "chromium is not installed: apt install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def desk(repo: Clone, cli: Command) -> Iterator[Served]:
    with server(cli.start("serve", "--desk", "--port", "0", cwd=repo.path)) as served:
        yield served


@pytest.fixture
def window(chromium: Any, desk: Served, cli: Command) -> Iterator[Open]:
    """Opens a browser of its own, logged in by a link of its own."""
    contexts = []

    def opened(width: int = 1280, scheme: str = "light", *, scripts: bool = True) -> Window:
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts
        )
        contexts.append(context)
        made = Window(context.new_page())
        made.page.goto(json.loads(cli.quick("serve", "--login", "--json", code=0).out)["login"])
        made.page.wait_for_url(f"{desk.address}/")
        return made

    yield opened
    for context in contexts:
        context.close()


def questions(cli: Command, folder: Path) -> dict[str, str]:
    """One gate of each type of question, by the type."""
    schema = folder / "schema.json"
    schema.write_text(json.dumps(FORM), "utf-8")
    several = folder / "several.yml"
    several.write_text(
        "questions:\n- {key: db, prompt: Which?, type: choice, options: [Postgres, SQLite]}\n- {key: why, prompt: Why?}\n"
    )
    said = {
        "text": (BAD, "--context", BAD),
        "approval": ("Deploy?", "--type", "approval"),
        "choice": ("Which database?", "-o", "Postgres", "-o", "SQLite"),
        "choices": ("Which ones?", "--type", "choices", "-o", "Postgres", "-o", "SQLite", "-o", "DuckDB"),
        "form": ("Where?", "--type", "form", "--schema", str(schema)),
        "several": ("--file", str(several)),
    }
    return {kind: cli.quick("ask", *words, "-q", code=0).line for kind, words in said.items()}


@pytest.mark.parametrize(
    ("width", "scheme", "scripts"),
    [(1280, "light", True), (360, "dark", False)],
    ids=["wide", "narrow, dark, no script"],
)
def test_each_type_of_question_is_answered_by_keys_alone(
    repo: Clone, cli: Command, window: Open, width: int, scheme: str, scripts: bool, tmp_path: Path
) -> None:
    """From the list to its page, through its controls, to what is recorded; nothing is wider than the screen."""
    repo.write("app.py", "x = 1\n" * 40 + f"{'y' * 300} = 2\n")
    gates = questions(cli, tmp_path)
    seen = window(width, scheme, scripts=scripts)
    keys: dict[str, list[tuple[str, tuple[str, ...]]]] = {
        "text": [("textarea[name='q0.']", ("a", "b"))],
        "approval": [("input[name='q0.']", ("ArrowDown",))],
        "choice": [("input[name='q0.own']", ("m", "y"))],
        "choices": [("#q0\\.-0", ("Space",)), ("#q0\\.-2", ("Space",))],
        "form": [("#q0\\.0", ("e",)), ("#q0\\.1", ("3",))],
        "several": [("#q0\\.-0", ("Space",)), ("textarea[name='q1.']", ("h", "i"))],
    }
    values = {
        "text": {"answer": "ab"},
        "approval": {"answer": False},
        "choice": {"answer": "my"},
        "choices": {"answer": ["Postgres", "DuckDB"]},
        "form": {"answer": {"region": "eu", "replicas": 3}},
        "several": {"db": "Postgres", "why": "hi"},
    }
    for kind, gate in gates.items():
        seen.page.goto(seen.page.url.partition("/g/")[0])
        assert not seen.is_too_wide
        seen.follow(f"a[href='/g/{gate}']")
        assert not seen.is_too_wide
        for control, presses in keys[kind]:
            seen.focus(control)
            seen.press(*presses)
        seen.follow("#answer button")
        assert "Recorded: " in seen.page.inner_text("[role=status].said")
        said = json.loads(cli.quick("check", gate, "--json", code=3 if kind == "approval" else 0).out)[
            "answer"
        ]
        assert (said["values"], said["via"]) == (values[kind], "web")
    assert seen.complaints == []
    assert seen.page.title() != "taken"


@pytest.mark.parametrize(
    ("width", "scheme", "scripts"),
    [(1280, "light", True), (360, "dark", False)],
    ids=["wide", "narrow, dark, no script"],
)
def test_a_gate_is_commented_put_aside_and_stopped_by_keys_alone(
    cli: Command, window: Open, width: int, scheme: str, scripts: bool
) -> None:
    """Each form is opened, filled in and sent; nothing is wider than the screen."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    seen = window(width, scheme, scripts=scripts)
    seen.page.goto(f"{seen.page.url}g/{gate}")
    for deed, keys, words in (
        ("comment", ("w", "h", "y"), "your comment"),
        ("later", ("Control+a", "3", "h"), "it is put aside until"),
        ("stop", ("n", "o"), "it is stopped"),
    ):
        seen.focus(f"summary:has(+ #{deed})")
        seen.press("Enter")
        assert not seen.is_too_wide
        seen.focus(f"#{deed}-text")
        seen.press(*keys)
        seen.follow(f"#{deed} button")
        assert words in seen.page.inner_text("[role=status].said")
    said = json.loads(cli.quick("show", gate, "--json", code=0).out)
    assert [(one["event"], one.get("text")) for one in said["history"][1:]][::2] == [
        ("commented", "why"),
        ("stopped", "no"),
    ]
    assert said["state"] == "stopped"
    assert seen.complaints == []


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]
)
def test_axe_finds_nothing_on_any_page(
    repo: Clone, cli: Command, window: Open, desk: Served, width: int, scheme: str, tmp_path: Path
) -> None:
    """In either scheme, wide and narrow: lists, letters, an answer that was none, refusals, runs, the trail; nor does the policy for content."""
    repo.commit("a flow", **{"flows.py": FLOW})
    cli("run", "flows.py", cwd=repo.path, code=8)
    repo.write("app.py", "x = 1\n")
    gates = questions(cli, tmp_path)
    cli.quick("respond", gates["choice"], "Postgres", "--note", "as agreed", code=0)
    seen = window(width, scheme)
    found = {}
    run = json.loads(cli.quick("list", "--runs", "--json", code=0).out)["runs"][0]["id"]
    for path in ("/", *(f"/g/{gate}" for gate in gates.values()), "/runs", f"/runs/{run}", "/trail"):
        seen.page.goto(desk.address + path)
        seen.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        found[path] = seen.findings()
        assert not seen.is_too_wide, path
        assert seen.broken_cells == [], path
    assert seen.complaints == []
    seen.page.goto(f"{desk.address}/g/{gates['text']}")
    seen.follow("#answer button")
    found["an empty answer"] = seen.findings()
    seen.focus("summary:has(+ #stop)")
    seen.press("Enter")
    seen.follow("#stop button")
    found["no reason"] = seen.findings()
    seen.page.goto(f"{desk.address}/nothing")
    found["nothing"] = seen.findings()
    seen.page.goto(f"{desk.address}/login?token=old")
    found["a login that is over"] = seen.findings()
    assert {path: one for path, one in found.items() if one} == {}


def test_what_is_answered_elsewhere_is_said_on_the_page(cli: Command, window: Open, repo: Clone) -> None:
    """By whom and with what; what was typed stays, and cannot be sent. The list follows, and keeps the line that has the focus."""
    first = cli.quick("ask", "First?", "-q", code=0).line
    second = cli.quick("ask", "Second?", "-q", code=0).line
    seen, listed = window(), window()
    listed.focus(f"a[href='/g/{second}']")
    seen.page.goto(f"{seen.page.url}g/{first}")
    seen.page.fill("textarea[name='q0.']", "mine")
    cli.quick("respond", first, "theirs", code=0)
    seen.page.get_by_text("was answered by").wait_for()
    assert ": theirs" in seen.page.inner_text("#news")
    assert seen.page.input_value("textarea[name='q0.']") == "mine"
    assert seen.page.is_disabled("#answer button")
    listed.page.get_by_role("heading", name="1 waits for an answer").wait_for()
    assert listed.page.evaluate("document.activeElement.getAttribute('href')") == f"/g/{second}"
    third = cli.quick("ask", "Third?", "--priority", "urgent", "-q", code=0).line
    listed.page.wait_for_selector(f"a[href='/g/{third}']")
    assert listed.page.evaluate("document.activeElement.getAttribute('href')") == f"/g/{second}"
    assert (seen.complaints, listed.complaints) == ([], [])


def test_another_sites_page_cannot_act_here(
    chromium: Any, cli: Command, window: Open, desk: Served, tmp_path: Path
) -> None:
    """A form that sends itself from elsewhere, a frame, a script and a picture: nothing is answered, shown or read."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    seen = window()
    page = tmp_path / "evil.html"
    page.write_text(
        f"<form method=post action={desk.address}/g/{gate}/answer><input name='q0.' value=yes></form>"
        f"<iframe src={desk.address}/></iframe><img src={desk.address}/s/icon.svg>"
        "<script>document.forms[0].submit()</script>",
        "utf-8",
    )
    with seen.page.expect_navigation(url=f"{desk.address}/**"):
        seen.page.goto(page.as_uri(), wait_until="commit")
    assert "another site" in seen.page.inner_text("main") or "not logged in" in seen.page.inner_text("main")
    assert json.loads(cli.quick("check", gate, "--json", code=8).out)["state"] == "awaiting"
