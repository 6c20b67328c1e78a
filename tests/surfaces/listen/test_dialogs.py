"""The dialogs: what each program is started with, for whatever an agent wrote, and what its end means."""

from __future__ import annotations

import json

import pytest

from gitgate.store.git.programs import ProgramSaid
from gitgate.surfaces.listen import (
    AGAIN,
    ANSWER,
    BACK,
    DIALOGS,
    LATER,
    OSASCRIPT,
    OTHER,
    POWERSHELL,
    STOP,
    TERMINAL,
    Reply,
    Shown,
    TerminalPrompt,
    usable_dialogs,
)

NASTY = '--help $(id) `id` "\'; display dialog "x" <b>a_b</b> & \\n %s {0}\nsecond'
TITLE = "git gate: backend in shop"
ROWS = ("Postgres", "--extra $(id)", "A & <b>B</b>, C")


def shown(kind: str, text: str = NASTY) -> Shown:
    return Shown(kind, TITLE, text, ROWS if kind in ("one", "several") else ())


def argv(name: str, kind: str, text: str = NASTY) -> list[str]:
    return DIALOGS[name].command(shown(kind, text))[0]


def stdin(name: str, kind: str) -> bytes:
    return DIALOGS[name].command(shown(kind))[1]


def read(name: str, kind: str, code: int, out: str = "", err: str = "") -> Reply | None:
    return DIALOGS[name].read(shown(kind), ProgramSaid(code, out, err))


# zenity

HEAD = ["zenity", f"--title={TITLE}", "--width=560"]
WAYS = ["--extra-button=Later", "--extra-button=In the terminal", "--extra-button=Stop the agent…"]


def test_zenity_is_given_everything_as_words() -> None:
    """Where it would read markup, a key or a backslash in them they are escaped; rows go on standard input."""
    assert argv("zenity", "yesno") == [
        *HEAD,
        *("--question", "--no-markup", "--switch", f"--text={NASTY}"),
        *WAYS,
        *("--extra-button=No", "--extra-button=Yes"),
    ]
    assert argv("zenity", "notice") == [
        *HEAD,
        "--question",
        "--no-markup",
        "--switch",
        f"--text={NASTY}",
        *WAYS,
    ]
    buttons = ["--ok-label=Answer", "--cancel-label=Later", *WAYS[1:]]
    assert argv("zenity", "text", "a_b \\n <b>") == [*HEAD, "--entry", "--text=a__b \\\\n <b>", *buttons]
    assert argv("zenity", "one", "a_b \\n <b> & c") == [
        *HEAD,
        *("--list", "--height=420", "--hide-header", "--hide-column=1", "--print-column=1", "--separator=,"),
        "--text=a_b \\\\n &lt;b&gt; &amp; c",
        *("--column=number", "--column=option"),
        *buttons,
    ]
    assert stdin("zenity", "one") == b"1\nPostgres\n2\n--extra $(id)\n3\nA & <b>B</b>, C\n"
    several = argv("zenity", "several")
    assert [word for word in several if "column" in word or word == "--checklist"] == [
        *(
            "--checklist",
            "--hide-column=2",
            "--print-column=2",
            "--column=",
            "--column=number",
            "--column=option",
        )
    ]
    assert stdin("zenity", "several").startswith(b"FALSE\n1\nPostgres\nFALSE\n2\n")


@pytest.mark.parametrize(
    ("kind", "code", "out", "reply"),
    [
        ("yesno", 1, "Yes\n", Reply(ANSWER, True)),
        ("yesno", 1, "No\n", Reply(ANSWER, False)),
        ("yesno", 1, "", Reply(LATER)),  # closed, or Escape
        ("yesno", 1, "Stop the agent…\n", Reply(STOP)),
        ("text", 0, "Yes\n", Reply(ANSWER, "Yes")),
        ("text", 0, "Later\n", Reply(ANSWER, "Later")),
        ("text", 1, "Later\n", Reply(LATER)),
        ("text", 1, "In the terminal\n", Reply(TERMINAL)),
        ("one", 0, "2\n", Reply(ANSWER, 1)),
        ("one", 0, "\n", Reply(AGAIN)),
        ("one", 0, "9\n", Reply(AGAIN)),
        ("several", 0, "1,3\n", Reply(ANSWER, [0, 2])),
        ("notice", 1, "In the terminal\n", Reply(TERMINAL)),
    ],
)
def test_what_zenity_says(kind: str, code: int, out: str, reply: Reply) -> None:
    """Its buttons print their names and exit 1; a name that somebody typed is an answer, since that exits 0."""
    assert read("zenity", kind, code, out) == reply


@pytest.mark.parametrize(
    ("code", "err"), [(255, "unknown option"), (1, "cannot open display: :9"), (-15, "")]
)
def test_a_zenity_that_does_not_work_has_said_nothing(code: int, err: str) -> None:
    """An option that it does not know, no display, a kill: nothing of it is a decision."""
    assert read("zenity", "yesno", code, err=err) is None


# macOS


@pytest.mark.parametrize("kind", ["text", "yesno", "one", "several"])
def test_osascript_is_given_words_as_arguments(kind: str) -> None:
    """The script is the same whatever the question is; nothing of it was made of words of an agent."""
    rows = ["1. Postgres", "2. --extra $(id)", "3. A & <b>B</b>, C"] if kind in ("one", "several") else []
    assert argv("osascript", kind) == [
        "osascript",
        *(part for line in OSASCRIPT for part in ("-e", line)),
        "--",
        kind,
        TITLE,
        NASTY,
        *rows,
    ]
    assert stdin("osascript", kind) == b""


@pytest.mark.parametrize(
    ("kind", "out", "reply"),
    [
        ("text", "answer\nlines\nof it\n", Reply(ANSWER, "lines\nof it")),
        ("yesno", "answer\nYes\n", Reply(ANSWER, True)),
        ("yesno", "answer\nNo\n", Reply(ANSWER, False)),
        ("yesno", "other\n", Reply(OTHER)),
        ("one", "answer\n2. --extra $(id)\n", Reply(ANSWER, 1)),
        ("several", "answer\n1. Postgres\n3. A & <b>B</b>, C\n", Reply(ANSWER, [0, 2])),
        ("notice", "answer\n2. In the terminal\n", Reply(TERMINAL)),
        ("notice", "other\n", Reply(LATER)),
    ],
)
def test_what_osascript_says(kind: str, out: str, reply: Reply) -> None:
    """Rows come back with their numbers, and only these count."""
    assert read("osascript", kind, 0, out) == reply
    assert read("osascript", kind, 1, out) is None


# Windows, and the window of our own


@pytest.mark.parametrize("kind", ["text", "yesno", "one", "several", "notice"])
def test_powershell_is_given_words_on_standard_input(kind: str) -> None:
    """Its command is the same whatever the question is."""
    assert argv("powershell", kind) == ["powershell.exe", "-NoProfile", "-Sta", "-Command", POWERSHELL]
    said = json.loads(stdin("powershell", kind))
    assert (said["kind"], said["title"], said["text"]) == (kind, TITLE, NASTY)
    assert said["rows"] == list(shown(kind).rows)
    assert said["buttons"] == [
        ["later", "Later"],
        ["terminal", "In the terminal"],
        ["stop", "Stop the agent…"],
    ]
    assert stdin("tkinter", kind) == stdin("powershell", kind)


def test_the_window_is_a_process_of_ours() -> None:
    """By the Python that runs us; nothing of the question is on its command line."""
    words = argv("tkinter", "one")
    assert words[1:] == ["-P", "-m", "gitgate", "hook", "dialog-window"]


@pytest.mark.parametrize("name", ["powershell", "tkinter"])
@pytest.mark.parametrize(
    ("kind", "out", "reply"),
    [
        ("yesno", '{"act": "answer", "value": true}', Reply(ANSWER, True)),
        ("yesno", '{"act": "answer", "value": "yes"}', None),
        ("yesno", '{"act": "answer"}', None),
        ("text", '{"act": "answer", "value": "words"}', Reply(ANSWER, "words")),
        ("one", '{"act": "answer", "value": [1]}', Reply(ANSWER, 1)),
        ("one", '{"act": "answer", "value": [-1]}', Reply(AGAIN)),
        ("several", '{"act": "answer", "value": [0, 2, 7]}', Reply(ANSWER, [0, 2])),
        ("several", '{"act": "answer", "value": null}', Reply(AGAIN)),
        ("notice", '{"act": "terminal"}', Reply(TERMINAL)),
        ("notice", '{"act": "answer", "value": true}', Reply(AGAIN)),
        ("yesno", '{"act": "format c:"}', None),
        ("yesno", "Traceback", None),
        ("yesno", "[]", None),
        ("yesno", "", None),
    ],
)
def test_what_a_window_says(name: str, kind: str, out: str, reply: Reply | None) -> None:
    """Whatever is no act that was offered is none."""
    assert read(name, kind, 0, out) == reply


def test_ways_back_are_offered_where_they_are_meant() -> None:
    """A second dialog has others than the question."""
    asked = Shown("text", TITLE, "Why?", ways=(BACK,))
    assert "--cancel-label=Back" in DIALOGS["zenity"].command(asked)[0]
    assert DIALOGS["zenity"].read(asked, ProgramSaid(1, "", "")) == Reply(BACK)


def test_which_dialogs_can_be_used_is_seen(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A program on PATH and a desktop to show it on; what is missing is said with what installs it."""
    folder = tmp_path_factory.mktemp("bin")
    bare = {"PATH": str(folder)}
    assert usable_dialogs(bare) == []
    assert "apt install zenity" in DIALOGS["zenity"].lacks(bare)
    (folder / "zenity").write_text("#!/bin/sh\n")
    (folder / "zenity").chmod(0o755)
    assert "DISPLAY is not set" in DIALOGS["zenity"].lacks(bare)
    assert [one.name for one in usable_dialogs({**bare, "DISPLAY": ":0"})][:1] == ["zenity"]
    relative = {"PATH": "bin", "DISPLAY": ":0"}
    assert "no zenity" in DIALOGS["zenity"].lacks({**relative, "PATH": str(folder / "none")})
    for name, file in (("osascript", "osascript"), ("powershell", "powershell.exe")):
        assert DIALOGS[name].lacks(bare)
        (folder / file).write_text("#!/bin/sh\n")
        (folder / file).chmod(0o755)
        assert not DIALOGS[name].lacks(bare)


@pytest.mark.parametrize(
    ("out", "reply"),
    [
        ('{"act": "answer", "value": {"values": {"a": 1}, "note": ""}}', Reply(ANSWER, {"values": {"a": 1}, "note": ""})),
        ('{"act": "stop", "value": "why"}', Reply(STOP, "why")),
        ('{"act": "answer", "value": {}}', Reply(LATER)),
        ("", Reply(LATER)),
        ("[1]", Reply(LATER)),
    ],
)  # fmt: skip
def test_what_the_terminals_prompt_says(out: str, reply: Reply) -> None:
    """Whatever it says that is no answer puts the question aside."""
    assert TerminalPrompt({}).read(ProgramSaid(0, out, "")) == reply
    assert TerminalPrompt({}).read(ProgramSaid(130, out, "")) == Reply(LATER)
