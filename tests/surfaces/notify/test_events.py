"""Of what people are told, whom it concerns, and in which words."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from gitgate.acts.asking import AskWishes, ask
from gitgate.context.logins import Logins
from gitgate.context.machine import state_home
from gitgate.model.gate import Gate, Outcome, Question
from gitgate.policy import load_book
from gitgate.questions.drafts import Draft
from gitgate.surfaces.notify import Endpoint
from gitgate.surfaces.notify.addresses import (
    CHANNELS,
    Recipient,
    concerns,
    inert,
    is_over,
    message_id,
    notification,
    occasions,
    quiet_until,
)
from support.resuming import Clock, Seat
from support.signing import publish_policy
from support.testbed.repositories import Clone

PLAIN = Recipient("desktop", CHANNELS["desktop"], Endpoint(""), "git config")
POLICY = """policy:
  people:
    ada: {email: ada@example.org, login: ada}
    bob: {email: bob@example.org, login: bob}
  who: [bob]
"""


def asked(seat: Seat, prompt: str = "Which database?", **fields: object) -> Gate:
    draft = Draft((Question("answer", prompt, "text"),), agent="scripted", **fields)  # type: ignore[arg-type]
    return ask(seat.desk, draft, AskWishes(push=False)).gate


def ended(gate: Gate, state: str, **how: object) -> Gate:
    """The same gate after its agent's run."""
    outcome = Outcome("2030-01-01T00:00:00Z", "c" * 40, "failed" if state == "failed" else "resumed", **how)  # type: ignore[arg-type]
    last = replace(gate.history[0], commit="f" * 40, name=state, event=outcome)
    return replace(gate, state=state, history=(*gate.history, last), outcome=outcome)


def told_of(gate: Gate) -> list[str]:
    return [one.event for one in occasions(gate)]


def test_a_gate_that_waits_is_told_of_and_its_deadline(alone: Seat, clock: Clock) -> None:
    """Near it: the last quarter of the time, at most an hour; not where it reminds by itself."""
    assert told_of(asked(alone)) == ["opened"]
    short, long = asked(alone, timeout=3600), asked(alone, timeout=86_400)
    assert told_of(short) == ["opened", "deadline"]
    assert [list(occasions(gate))[1].due - clock() for gate in (short, long)] == [2700, 82_800]
    assert told_of(asked(alone, timeout=3600, on_timeout="remind")) == ["opened"]


def test_each_reminder_is_told_of_once(alone: Seat, clock: Clock) -> None:
    gate = asked(alone, timeout=60, on_timeout="remind")
    clock.pass_by(61)
    from gitgate.gates.recording import act

    first = act(alone.desk, gate)
    clock.pass_by(1000)
    second = act(alone.desk, first)
    keys = [[one.key for one in occasions(g) if one.event == "reminded"] for g in (gate, first, second)]
    assert [len(each) for each in keys] == [0, 1, 1]
    assert keys[1] != keys[2]


def test_an_agent_that_failed_or_stopped_short_is_told_of(alone: Seat) -> None:
    """One that came to its end is not; nor is a gate that was answered, withdrawn or stopped."""
    gate = asked(alone)
    assert told_of(ended(gate, "failed", reason="no luck")) == ["failed"]
    assert told_of(ended(gate, "resumed", left=("a.txt",))) == ["unfinished"]
    assert told_of(ended(gate, "resumed")) == []
    assert [told_of(replace(gate, state=state)) for state in ("answered", "withdrawn", "stopped")] == [
        [],
        [],
        [],
    ]


def test_what_is_over_is_told_no_more(alone: Seat) -> None:
    gate = asked(alone, timeout=3600)
    opened, deadline = occasions(gate)
    assert not is_over(gate, "opened", opened.key)
    assert is_over(replace(gate, state="answered"), "opened", opened.key)
    assert is_over(replace(gate, deadline="2031-01-01T00:00:00Z"), "deadline", deadline.key)
    assert is_over(None, "opened", opened.key)


@pytest.mark.parametrize(
    ("to", "people", "heard"),
    [
        ((), (), True),
        ((), ("ada@example.org",), True),
        (("ada@example.org",), ("ada@example.org",), True),
        (("@ada",), ("Ada Lovelace <ada@example.org>",), True),
        (("@bob",), ("ada@example.org",), False),
        (("@bob",), ("ada@example.org", "@bob"), True),
        (("@bob",), (), True),
    ],
)
def test_a_gate_is_told_to_those_it_is_for(
    alone: Seat, to: tuple[str, ...], people: tuple[str, ...], heard: bool
) -> None:
    """By name, address or login; an address for nobody in particular hears of all."""
    assert concerns(alone.desk, None, replace(PLAIN, to=people), asked(alone, to=to), "") is heard


def test_on_a_clone_it_is_told_to_its_person(alone: Seat) -> None:
    """Unless the address says for whom it is; one of the branch is for everybody."""
    gate = asked(alone, to=("@bob",))
    ada = "Ada Lovelace <ada@example.org>"
    assert not concerns(alone.desk, None, PLAIN, gate, ada)
    assert concerns(alone.desk, None, replace(PLAIN, to=("@bob",)), gate, ada)
    assert concerns(alone.desk, None, replace(PLAIN, target=Endpoint("", own=False)), gate, ada)


def test_who_may_not_answer_by_the_policy_is_not_told(bare: Clone, ann: Seat) -> None:
    publish_policy(bare, POLICY)
    ann.clone.git("fetch", "-q")
    gate, desk = asked(ann), ann.desk
    book = load_book(desk)
    assert not concerns(desk, book, PLAIN, gate, "Ada <ada@example.org>")
    assert concerns(desk, book, PLAIN, gate, "Bob <bob@example.org>")
    ada = "Ada <ada@example.org>"
    for people, heard in {
        "bob@example.org": True,
        "@bob": True,
        "ada@example.org": False,
        "@ada": False,
    }.items():
        assert concerns(desk, book, replace(PLAIN, to=(people,)), gate, ada) is heard, people


@pytest.mark.parametrize(
    ("only", "heard"), [("low", True), ("normal", True), ("high", False), ("urgent", False)]
)
def test_no_gate_below_a_priority(alone: Seat, only: str, heard: bool) -> None:
    assert concerns(alone.desk, None, replace(PLAIN, only=only), asked(alone), "") is heard


def said(seat: Seat, gate: Gate, **how: str) -> tuple[str, str, str]:
    from json import dumps

    made = notification(seat.desk, replace(PLAIN, **how), gate, next(occasions(gate)))  # type: ignore[arg-type]
    return made.title, made.text, dumps(made.shape)


def test_title_who_age_and_the_command_are_said(alone: Seat, clock: Clock) -> None:
    """Neither context nor options nor work."""
    gate = asked(alone, context="the secret plan", priority="high", title="Which database?")
    clock.pass_by(130)
    title, text, shape = said(alone, gate)
    assert title == "Question: Which database?"
    assert text == f"scripted in repo, 2m ago, priority high\ngit gate respond {gate.id[:6]}"
    assert "secret plan" not in shape
    assert '"schema": "gitgate.notification/v1"' in shape
    assert said(alone, gate, url="https://example.org/g/{id}")[1].endswith(f"https://example.org/g/{gate.id}")


def test_a_link_to_ones_own_desk_opens_that_gate(alone: Seat) -> None:
    """To an address of one's own, where a desk was served; else the command is said. What only tells has none, and neither has
    what every account of this machine can read.
    """
    gate = asked(alone)
    command = f"git gate respond {gate.id[:6]}"
    mine = replace(PLAIN, url="{link}", channel=CHANNELS["command"], target=Endpoint("tell-me"))

    def told(recipient: Recipient) -> str:
        return notification(alone.desk, recipient, gate, next(occasions(gate))).text

    assert told(mine).endswith(command)
    home = state_home(os.environ)
    assert home is not None
    logins = Logins(home, alone.clock)
    logins.new_login("http://127.0.0.1:8577")
    url = told(mine).rpartition("\n")[2]
    assert url.startswith("http://127.0.0.1:8577/l/")
    assert logins.gate_of(url.rpartition("/")[2]) == gate.id
    assert told(replace(mine, target=replace(mine.target, own=False))).endswith(command)
    assert told(replace(PLAIN, url="{link}")).endswith(command)
    ended = replace(next(occasions(gate)), event="failed")
    assert "/l/" not in notification(alone.desk, mine, gate, ended).text


@pytest.mark.parametrize(
    "hostile",
    [
        "<b>bold</b> <!channel> <@U1>",
        "@everyone @here",
        "see https://evil.example/approve or http://x",
        "[approve](javascript:x)",
        "`code` $(touch x) | <a href=x>",
        "\x1b[31mred\x07 \u202egnp.exe",
        "two\nlines\rthree",
    ],
)
def test_words_are_inert_wherever_they_are_shown(alone: Seat, hostile: str) -> None:
    """No markup, no mention, no link, no character that acts, and one line; in the text and in JSON."""
    told = inert(hostile)
    assert not set("<>@`|\x1b\x07\u202e\n\r") & set(told)
    assert "://e" not in told
    assert "](j" not in told
    gate = asked(alone, "Which?", title=hostile, context=hostile)
    for part in said(alone, gate):
        assert "<!channel>" not in part
        assert "@everyone" not in part
        assert "https://evil" not in part
        assert "\x1b" not in part


def test_a_message_has_one_name_for_each_gate_event_and_address() -> None:
    """Whoever sends it, whenever."""
    same = message_id("g", "opened", "opened", "a")
    assert same == message_id("g", "opened", "opened", "a")
    others = {
        message_id(*one)
        for one in (
            ("h", "opened", "opened", "a"),
            ("g", "deadline", "x", "a"),
            ("g", "opened", "opened", "b"),
        )
    }
    assert same not in others
    assert len(others) == 3


@pytest.mark.parametrize(
    ("hours", "clock", "until"),
    [
        ("22:00-07:00", "23:30", "07:00"),
        ("22:00-07:00", "06:59", "07:00"),
        ("22:00-07:00", "07:00", ""),
        ("22:00-07:00", "12:00", ""),
        ("12:00-13:00", "12:30", "13:00"),
        ("12:00-13:00", "13:00", ""),
        ("", "03:00", ""),
    ],
)
def test_quiet_hours(hours: str, clock: str, until: str) -> None:
    """By this machine's clock, over midnight too."""
    now = time.mktime(time.strptime(f"2030-05-05 {clock}:20", "%Y-%m-%d %H:%M:%S"))
    end = quiet_until(hours, now)
    assert (time.strftime("%H:%M", time.localtime(end)) if end else "") == until
    assert not end or 0 < end - now <= 9 * 3600


def test_a_gate_of_a_run_says_which(alone: Seat) -> None:
    """In a line of the text, and whole in JSON; what an agent wrote there does nothing."""
    config = {"run": "abcdefghjk", "flow": "<!here> feature", "step": "run:coder#1"}
    gate = asked(alone, config=config)
    told = notification(alone.desk, PLAIN, gate, next(iter(occasions(gate))))
    assert "run abcdefghjk" in told.text
    assert told.shape["gate"]["run"] == {"id": "abcdefghjk", "flow": "‹!here› feature", "step": "run:coder#1"}
    plain = asked(alone)
    told = notification(alone.desk, PLAIN, plain, next(iter(occasions(plain))))
    assert told.shape["gate"]["run"] is None
    assert "run " not in told.text
