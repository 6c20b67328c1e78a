#!/usr/bin/env python3
"""Documentation: the picture in the README, drawn from what `git gate demo` really prints.

`docs/cast.py` runs the demonstration and writes `demo-light.svg` and `demo-dark.svg`; `--check` runs it and fails where
they differ. Ids, hashes, times and the host change from run to run, and are replaced by fixed ones.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
COMMAND = Path(sys.executable).parent / "git-gate"

WIDTH, ROWS = 96, 24
CELL, LINE, MARGIN = 8.4, 19, 18
PAUSE, EVERY = 2.6, 0.14  # seconds before a command, and between two lines
COLOURS = {
    "light": {"back": "#ffffff", "edge": "#d0d7de", "text": "#1f2328", "dim": "#59636e", "prompt": "#0969da"},
    "dark": {"back": "#0d1117", "edge": "#30363d", "text": "#e6edf3", "dim": "#8b949e", "prompt": "#58a6ff"},
}
# Which steps are shown, by the beginning of their command, and how many lines of each.
SHOWN = {"git gate ask": 3, "git gate": 9, "git gate respond": 3, "git log": 8, "git gate log": 6}
FIXED = (
    (re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d):\d\dZ"), "2026-01-15T09:30:00Z"),
    (re.compile(r"\b[0-9a-f]{7}\b(?= Log in)"), "4c1d9e2"),
    (re.compile(r"(?<=local on )\S+"), "server"),
    (re.compile(r"(?m)(?<= )\d+s(?=  normal)"), "2s"),
)
ID, NAME = re.compile(r"\b[2-9a-z]{10}\b"), "7k2fw9c3ab"


def steps() -> list[dict[str, str]]:
    """What the demonstration printed, step by step, with everything replaced that differs from run to run."""
    done = subprocess.run([str(COMMAND), "demo", "--json"], capture_output=True, text=True, check=True)
    found: list[dict[str, str]] = json.loads(done.stdout)["steps"]
    asked = next(step for step in found if step["command"].startswith("git gate ask"))
    gate = asked["output"].split()[0]
    if not ID.fullmatch(gate):
        raise SystemExit(f"the first word after asking is no gate's id: {gate!r}")

    def fixed(text: str) -> str:
        text = text.replace(gate, NAME).replace(gate[:6], NAME[:6])
        for pattern, words in FIXED:
            text = pattern.sub(words, text)
        return text

    return [{name: fixed(text) for name, text in step.items()} for step in found]


def chosen(found: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    """The lines of the picture, each as (who, command or empty, text)."""
    lines: list[tuple[str, str, str]] = []
    for step in found:
        name = next((n for n in sorted(SHOWN, key=len, reverse=True) if begins(step["command"], n)), None)
        if name is None:
            continue
        lines.append(("why", "", f"# {step['why']}"))
        lines.append((step["who"], step["command"], ""))
        said = [line for line in step["output"].splitlines() if line.strip()]
        lines += [("", "", line) for line in said[: SHOWN[name]]]
        lines.append(("", "", ""))
    return lines


def begins(command: str, name: str) -> bool:
    return command == name if name == "git gate" else command.startswith(f"{name} ")


def drawn(lines: list[tuple[str, str, str]], theme: str) -> str:
    """One picture: the lines appear one after the other, and scroll once the window is full."""
    colour = COLOURS[theme]
    width, height = round(WIDTH * CELL + 2 * MARGIN), ROWS * LINE + 2 * MARGIN
    at, times = 0.6, []
    for who, command, _ in lines:
        at += PAUSE if who == "why" else EVERY * (4 if command else 1)
        times.append(at)
    whole = at + 6
    scrolled = [(t, max(0, index + 1 - ROWS)) for index, t in enumerate(times)]
    frames = "".join(f"{100 * t / whole:.2f}%{{transform:translateY({-LINE * n}px)}}" for t, n in scrolled)
    shown = "".join(
        f"@keyframes l{index}{{0%,{100 * t / whole:.2f}%{{opacity:0}}{100 * t / whole + 0.01:.2f}%,100%{{opacity:1}}}}"
        f".l{index}{{animation:l{index} {whole:.1f}s step-end infinite}}"
        for index, t in enumerate(times)
    )
    text = "".join(line(index, *row) for index, row in enumerate(lines))
    style = (
        f".w{{animation:s {whole:.1f}s step-end infinite}}@keyframes s{{0%{{transform:translateY(0)}}{frames}}}{shown}"
        f"text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:{colour['text']};white-space:pre}}"
        f".d{{fill:{colour['dim']}}}.p{{fill:{colour['prompt']};font-weight:600}}"
        "@media (prefers-reduced-motion:reduce){.w,.w *{animation:none!important}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'aria-label="An agent asks which database to use, a person answers in another clone, and the agent goes on.">'
        f"<style>{style}</style>"
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" fill="{colour["back"]}" stroke="{colour["edge"]}"/>'
        f'<clipPath id="c"><rect x="0" y="{MARGIN}" width="{width}" height="{ROWS * LINE}"/></clipPath>'
        f'<g clip-path="url(#c)"><g class="w">{text}</g></g></svg>\n'
    )


def line(index: int, who: str, command: str, words: str) -> str:
    place = f'<text xml:space="preserve" class="l{index}" x="{MARGIN}" y="{MARGIN + (index + 1) * LINE - 5}">'
    if command:
        return (
            f'{place}<tspan class="p">{escape(who)}$ </tspan>{escape(clipped(command, len(who) + 2))}</text>'
        )
    kind = ' class="d"' if who == "why" else ""
    return f"{place}<tspan{kind}>{escape(clipped(words))}</tspan></text>"


def clipped(text: str, taken: int = 0) -> str:
    most = WIDTH - taken
    return text if len(text) <= most else f"{text[: most - 1]}…"


def main(arguments: list[str]) -> int:
    """Write the two pictures, or with `--check` say which one is not what the demonstration prints."""
    lines = chosen(steps())
    stale = 0
    for theme in COLOURS:
        path, text = DOCS / f"demo-{theme}.svg", drawn(lines, theme)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if arguments == ["--check"]:
            print(f"docs/{path.name} is not what the demonstration prints: python docs/cast.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"docs/{path.name} written")
    return 1 if stale and arguments == ["--check"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
