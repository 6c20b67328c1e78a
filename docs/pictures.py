#!/usr/bin/env python3
"""Documentation: what a question, its outcome and a failure look like on a pull request, as pictures for `docs/github.md`; and the
pages of `git gate serve --desk` for `docs/web.md`.

`docs/pictures.py` asks and answers in a scratch repository, has each comment written as a job writes it, renders it with GitHub's
own engine for Markdown, and has a headless Chromium draw the page, light and dark. The page around the comment is a plain one of
ours. It needs `chromium` and `pngquant` on PATH, `pip install -e '.[dev]'`, and for the pages Playwright (`.[browser]`); pictures differ with fonts, so no test draws them again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

from gitgate.context import open_desk
from gitgate.gates.recording import reload
from gitgate.gates.work import diff_of
from gitgate.model.gate import Gate
from gitgate.surfaces.forge.comment import View, outcome_note, render
from gitgate.surfaces.forge.words import whose_reply

DOCS = Path(__file__).parent
COMMAND = Path(sys.executable).parent / "git-gate"
MOST = 60 << 10
SITE = "https://github.com/team/project"
WIDTH = 760
PROMPT = """Which session store shall I use? Sessions have to survive a restart, see `docs/sessions.md`."""
CONTEXT = """The app runs on two machines.\n\n- **Redis** is there already, for the queue\n- the cookies hold an id only"""
AGENTS = {
    "well": "echo 'store = redis' >> login.py; git commit -qam 'Keep sessions in Redis'; echo 'Sessions are in Redis now; a restart keeps them.'",
    "fails": "echo 'The package registry answered 503: redis could not be installed.' >&2; exit 1",
}
STYLE = """
:root { --back: #ffffff; --box: #ffffff; --bar: #f6f8fa; --edge: #d0d7de; --text: #1f2328; --dim: #59636e; --link: #0969da; --code: #818b981f; }
.dark { --back: #0d1117; --box: #0d1117; --bar: #151b23; --edge: #3d444d; --text: #f0f6fc; --dim: #9198a1; --link: #4493f8; --code: #656c7633; }
body { margin: 0; padding: 14px; background: var(--back); color: var(--text); font: 14px/1.5 "DejaVu Sans", "Segoe UI", sans-serif; }
article { border: 1px solid var(--edge); border-radius: 6px; background: var(--box); }
header { padding: 8px 16px; background: var(--bar); border-bottom: 1px solid var(--edge); border-radius: 6px 6px 0 0; color: var(--dim); }
header b { color: var(--text); }
header i { font-style: normal; border: 1px solid var(--edge); border-radius: 10px; padding: 0 6px; font-size: 11px; }
main { padding: 16px; }
main > :first-child { margin-top: 0; } main > :last-child { margin-bottom: 0; }
h3 { font-size: 1.2em; margin: 0 0 12px; } p, ol, ul, pre, blockquote, details { margin: 0 0 14px; }
sub { color: var(--dim); font-size: 12px; vertical-align: baseline; }
a { color: var(--link); text-decoration: none; }
code { background: var(--code); border-radius: 6px; padding: .2em .4em; font: 12px "DejaVu Sans Mono", monospace; }
pre { background: var(--bar); border-radius: 6px; padding: 12px; overflow: hidden; } pre code { background: none; padding: 0; }
blockquote { border-left: 4px solid var(--edge); padding: 0 1em; color: var(--dim); margin-left: 0; }
summary { cursor: pointer; } ol, ul { padding-left: 2em; } details > :last-child { margin-bottom: 0; }
"""


def git(place: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=place, check=True, capture_output=True)


def gate(place: Path, *words: str, ok: bool = True) -> str:
    done = subprocess.run([str(COMMAND), *words], cwd=place, capture_output=True, text=True, check=False)
    if ok and done.returncode:
        raise SystemExit(f"git gate {' '.join(words)}: {done.stderr}")
    return done.stdout.strip()


def scratch(folder: Path) -> Path:
    """A repository with a branch, and an agent's half-done work on it; nothing of this machine has a part in it."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "GITGATE_", "CLAUDE", "AI_AGENT"))]:
        del os.environ[name]
    home = folder / "home"
    home.mkdir()
    os.environ |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home)}
    place = folder / "project"
    place.mkdir()
    git(place, "init", "-q", "-b", "login")
    for key, value in {
        "user.name": "Ada",
        "user.email": "ada@example.org",
        "gitgate.initialised": "true",
    }.items():
        git(place, "config", "--global", key, value)
    (place / "login.py").write_text("def login(name):\n    ...\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "Log in")
    (place / "login.py").write_text(
        "import sessions\n\n\ndef login(name):\n    return sessions.begin(name)\n"
    )
    return place


def asked(place: Path, agent: str) -> str:
    program = place.parent / agent
    program.write_text(f"#!/bin/sh\n{AGENTS[agent]}\n")
    program.chmod(0o755)
    git(place, "config", f"gitgate.agent.{agent}.resume", str(program))
    words = ("-o", "Memory=nothing to run, gone with a restart", "-o", "Redis=there already, for the queue")
    flags = ("--agent", agent, "--session", "session-1", "--context", CONTEXT, "--timeout", "4h")
    return gate(place, "ask", PROMPT, *words, *flags).split()[0]


def seen(place: Path, name: str, draw: Callable[[View], str]) -> str:
    """What is written of a gate, as if a job of Ada's had asked it, on a pull request that Grace is to look at."""
    desk = open_desk(place, os.environ)
    found: Gate = reload(desk, name)
    opened = found.opened
    config = {**opened.config, "job_run": 4711}
    told = replace(opened, config=config, asked=replace(opened.asked, agent="claude/91fe", logins=("ada",)))
    shown = replace(found, opened=told)
    work = (diff_of(desk, found, stat=True), diff_of(desk, found)) if found.state == "awaiting" else ("", "")
    view = View(shown, *work, SITE, whose=whose_reply(desk, found), called=("grace",), jobs=True)
    text = draw(view)
    desk.close()
    return re.sub(rf"\b{name}\b", "7k2fw9c3ab", text)


def note(view: View) -> str:
    found = outcome_note(view)
    if found is None:
        raise SystemExit(f"gate {view.gate.id} is {view.gate.state}: nothing came of it")
    return found.body


def comments(folder: Path) -> dict[str, str]:
    """The three, as Markdown."""
    place = scratch(folder)
    first = asked(place, "well")
    found = {"question": seen(place, first, render)}
    gate(place, "respond", first, "redis", "--no-resume")
    gate(place, "resume", first)
    found["outcome"] = seen(place, first, note)
    second = asked(place, "fails")
    gate(place, "respond", second, "redis", "--no-resume")
    gate(place, "resume", second, ok=False)
    found["failure"] = seen(place, second, note)
    return found


def page(body: str, theme: str) -> str:
    """The comment in a page, which says its own height."""
    options = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_HARDBREAKS
    words = cmarkgfm.github_flavored_markdown_to_html(body, options)
    words = re.sub(
        r"(?<![\w/`>])@(grace)\b", rf'<a href="{escape("https://github.com/grace")}"><b>@\1</b></a>', words
    )
    head = "<header><b>github-actions</b> <i>bot</i> commented</header>"
    script = "<script>document.title = document.documentElement.scrollHeight</script>"
    return (
        f'<!doctype html><html class="{theme}"><meta charset="utf-8"><title>0</title><style>{STYLE}</style>'
        f'<body class="{theme}"><article>{head}<main>{words}</main></article>{script}</body></html>'
    )


def program_called(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise SystemExit(f"there is no {names[0]} on PATH: apt-get install {names[0]}")
    return found


def chromium(*words: str) -> str:
    program = program_called("chromium", "chromium-browser", "google-chrome")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-lcd-text")
    return subprocess.run(
        [program, *flags, *words], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def draw(place: Path, picture: Path) -> None:
    said = re.search(
        r"<title>(\d+)</title>", chromium(f"--window-size={WIDTH},200", "--dump-dom", place.as_uri())
    )
    if said is None:
        raise SystemExit("the page did not say how high it is")
    chromium(f"--window-size={WIDTH},{said[1]}", f"--screenshot={picture}", place.as_uri())
    less(picture)


def less(picture: Path) -> None:
    """With few colours, and not too large."""
    few = ("--force", "--ext", ".png", "--strip", "64", str(picture))
    subprocess.run([program_called("pngquant"), *few], check=True)
    if picture.stat().st_size > MOST:
        raise SystemExit(f"{picture.name} has {picture.stat().st_size:,} bytes; expected at most {MOST:,}")


SCREENS = {"wide": (900, 760), "phone": (360, 720)}


def photograph(folder: Path) -> None:
    """The page of a question on a real desk, in a window and on a telephone, light and dark."""
    from playwright.sync_api import sync_playwright

    folder.mkdir()
    place = scratch(folder)
    name = asked(place, "well")
    served = subprocess.Popen(
        [COMMAND, "serve", "--desk", "--port", "0"], cwd=place, stdout=subprocess.PIPE, text=True
    )
    try:
        link = served.stdout.readline().strip() if served.stdout is not None else ""
        with sync_playwright() as playwright:
            program = program_called("chromium", "chromium-browser", "google-chrome")
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            window = browser.new_page()
            window.goto(link)
            for what, (width, height) in SCREENS.items():
                for theme in ("light", "dark"):
                    window.set_viewport_size({"width": width, "height": height})
                    window.emulate_media(color_scheme=theme)
                    window.goto(f"{link.partition('/login')[0]}/g/{name}")
                    picture = DOCS / f"web-{what}-{theme}.png"
                    window.screenshot(path=picture, full_page=True)
                    less(picture)
                    print(f"docs/{picture.name} written")
    finally:
        served.terminate()
        served.wait(60)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, body in comments(folder).items():
            for theme in ("light", "dark"):
                place = folder / f"{what}-{theme}.html"
                place.write_text(page(body, theme), encoding="utf-8")
                draw(place, DOCS / f"comment-{what}-{theme}.png")
                print(f"docs/comment-{what}-{theme}.png written")
        photograph(folder / "desk")


if __name__ == "__main__":
    main()
