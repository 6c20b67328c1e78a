"""Surfaces: what waits is listed, read and answered on pages, each type of question by its own controls."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitgate.model.gate import Gate, Option, Question
from gitgate.surfaces.web.site import WebSite
from support.resuming import Seat
from support.testbed.command import Command

from .conftest import FormBrowser, WebReply, asked

FLOW = """
import gitgate


@gitgate.flow
def release():
    return gitgate.wait(gitgate.ask("Deploy <b>it?", type="approval")).approved
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "enum": ["eu", "us"]},
        "replicas": {"type": "integer", "minimum": 1},
        "backups": {"type": "boolean"},
        "notes": {"type": "string", "description": "What else <i>matters</i>"},
    },
    "required": ["region", "replicas"],
}
OPTIONS = (Option("Postgres", "with <b>replicas</b>"), Option("SQLite", ""), Option("2", ""))
TEXT = Question("answer", "Which?", "text")
APPROVAL = Question("answer", "Deploy?", "approval")
CHOICE = Question("answer", "Which database?", "choice", OPTIONS, other=True)
CHOICES = Question("answer", "Which ones?", "choices", OPTIONS, other=True)
FORM = Question("answer", "Where?", "form", schema=SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "said", "value"),
    [
        (TEXT, {"q0_": "one\r\ntwo"}, "one\ntwo"),
        (APPROVAL, {"q0_": "yes"}, True),
        (APPROVAL, {"q0_": "no"}, False),
        (CHOICE, {"q0_": "1"}, "SQLite"),
        (CHOICE, {"q0_": "2"}, "2"),
        (CHOICE, {"q0_own": "a file"}, "a file"),
        (CHOICES, {"q0_": ["0", "2"]}, ["Postgres", "2"]),
        (CHOICES, {"q0_own": "none, really"}, ["none, really"]),
        (FORM, {"q0_0": "eu", "q0_1": "3", "q0_2": "true"}, {"region": "eu", "replicas": 3, "backups": True}),
    ],
)
def test_a_question_of_each_type_is_answered(
    alone: Seat, browser: FormBrowser, question: Question, said: dict[str, Any], value: object
) -> None:
    """By what its page has to fill in; recorded in the person's name, as said on the web, with its note."""
    gate = asked(alone, question)
    reply = browser.answer(gate, **said, note="  as agreed ")
    assert (reply.status, reply.headers["location"]) == (303, f"/g/{gate.id}")
    answer = alone.now(gate).answer
    assert answer is not None
    assert (answer.answer.values, answer.answer.via, answer.answer.note) == (
        {"answer": value},
        "web",
        "as agreed",
    )
    assert answer.answer.by == alone.desk.person()
    assert "as it was said" in browser.get(f"/g/{gate.id}").text
    assert "as it was said" not in browser.get(f"/g/{gate.id}").text


def test_several_questions_are_answered_at_once(alone: Seat, browser: FormBrowser) -> None:
    first, second = Question("db", "Which?", "choice", OPTIONS), Question("why", "Why?", "text")
    gate = asked(alone, first, second, title="Two things")
    assert browser.answer(gate, q0_="0").status == 422
    assert browser.answer(gate, q0_="0", q1_="it is there").status == 303
    assert (found := alone.now(gate).answer) is not None
    assert found.answer.values == {"db": "Postgres", "why": "it is there"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "said", "words"),
    [
        (TEXT, {"q0_": "  "}, "empty"),
        (APPROVAL, {}, "empty"),
        (CHOICE, {}, "empty"),
        (CHOICE, {"q0_": "7"}, "there is no option"),
        (CHOICE, {"q0_": "0", "q0_own": "mine"}, "not both"),
        (CHOICES, {"q0_": ["0", "-1"]}, "there is no option"),
        (FORM, {"q0_0": "eu", "q0_1": "none at all"}, "does not fit its schema"),
        (FORM, {"q0_1": "2", "q0_3": "kept <as> it was"}, "kept &lt;as&gt; it was"),
    ],
)
def test_what_is_no_answer_is_said_and_kept_in_the_form(
    alone: Seat, browser: FormBrowser, question: Question, said: dict[str, Any], words: str
) -> None:
    gate = asked(alone, question)
    reply = browser.answer(gate, **said, note="still here")
    assert reply.status == 422
    assert words in reply.text
    assert reply.form["note"] == ["still here"]
    assert alone.now(gate).state == "awaiting"


def test_an_answer_is_bound_to_what_was_shown(alone: Seat, browser: FormBrowser) -> None:
    """A gate that has other terms by then is shown anew, with what was typed, and not answered; without the mark neither."""
    from gitgate.acts.answering import edit

    gate = asked(alone, TEXT)
    form = browser.get(f"/g/{gate.id}").form
    edit(alone.desk, alone.now(gate), priority="urgent")
    late = browser.post(f"/g/{gate.id}/answer", {**form, "q0.": "as I saw it"})
    assert (late.status, late.form["q0."]) == (409, ["as I saw it"])
    assert "edited after you read it" in late.text
    unbound = browser.post(f"/g/{gate.id}/answer", {**late.form, "seen": ""})
    assert (unbound.status, alone.now(gate).state) == (409, "awaiting")
    assert browser.post(f"/g/{gate.id}/answer", late.form).status == 303


def test_who_comes_second_is_told_who_was_first(alone: Seat, browser: FormBrowser) -> None:
    gate = asked(alone, TEXT)
    form = browser.get(f"/g/{gate.id}").form
    alone.answer(gate, "Postgres")
    late = browser.post(f"/g/{gate.id}/answer", {**form, "q0.": "SQLite"})
    assert late.status == 409
    assert alone.desk.person().partition(" <")[0] in alert(late)
    assert (found := alone.now(gate).answer) is not None
    assert found.answer.values == {"answer": "Postgres"}


def test_ones_own_answer_is_corrected_while_nobody_acts_on_it(alone: Seat, browser: FormBrowser) -> None:
    gate = asked(alone, TEXT)
    alone.answer(gate, "Postgres")
    assert browser.answer(gate, q0_="SQLite").status == 303
    assert (found := alone.now(gate).answer) is not None
    assert found.answer.values == {"answer": "SQLite"}


def test_what_is_said_once_waits_for_a_page_that_somebody_opens(alone: Seat, browser: FormBrowser) -> None:
    """The page that was open hears of the change at once, and reads itself anew before the browser follows to the next one."""
    gate = asked(alone, TEXT)
    assert browser.remark("comment", gate, "why").status == 303
    assert "Recorded" not in browser.request("GET", f"/g/{gate.id}", headers={"gitgate-live": "1"}).text
    assert "Recorded: your comment" in browser.get(f"/g/{gate.id}").text
    assert "Recorded" not in browser.get(f"/g/{gate.id}").text


@pytest.mark.slow
def test_a_gate_is_commented_put_aside_and_stopped_on_its_page(alone: Seat, browser: FormBrowser) -> None:
    """In the person's name. What is put aside goes below what waits, and comes back; who stops it says why."""
    gate = asked(alone, TEXT)
    assert browser.remark("comment", gate, " which <b>region?\r\n").status == 303
    page = browser.get(f"/g/{gate.id}").text
    assert "Recorded: your comment; saved here" in page
    assert "which &lt;b&gt;region?" in page
    assert browser.remark("later", gate, "2h").status == 303
    until = alone.now(gate).later
    assert f"it is put aside until {until}; saved here" in browser.get(f"/g/{gate.id}").text
    assert "0 wait for an answer" in browser.get("/").text
    assert browser.get(f"/g/{gate.id}").form_of("later")["text"] == ["now"]
    assert browser.remark("later", gate, "now").status == 303
    assert "it waits again" in browser.get(f"/g/{gate.id}").text
    assert browser.remark("stop", gate, "we do it differently").status == 303
    assert "it is stopped" in (page := browser.get(f"/g/{gate.id}").text)
    assert [name for name in ("answer", "comment", "later", "stop") if f'id="{name}"' in page] == []
    said = alone.now(gate)
    assert [entry.name for entry in said.history[1:]] == ["commented", "edited", "edited", "stopped"]
    assert {entry.event.by for entry in said.history[1:]} == {alone.desk.person()}  # type: ignore[union-attr]
    assert (said.state, said.closing and (said.closing.text, said.closing.via)) == (
        "stopped",
        ("we do it differently", "web"),
    )


@pytest.mark.slow
def test_what_is_no_remark_is_said_and_kept_in_its_form(alone: Seat, browser: FormBrowser) -> None:
    """Whoever acts on other terms than they saw is shown these first; what was typed stays."""
    from gitgate.acts.answering import edit

    gate = asked(alone, TEXT)
    for deed, text, words in (
        ("comment", " ", "a comment needs words"),
        ("later", "a <while>", "expected a duration"),
        ("stop", "", "say why it is stopped"),
    ):
        reply = browser.remark(deed, gate, text)
        assert (reply.status, words in reply.text, "git gate " in alert(reply)) == (422, True, False)
        assert reply.form_of(deed)["text"] == [text]
    forms = {deed: browser.get(f"/g/{gate.id}").form_of(deed) for deed in ("comment", "later", "stop")}
    edit(alone.desk, alone.now(gate), priority="urgent")
    for deed, form in forms.items():
        stale = browser.post(f"/g/{gate.id}/{deed}", {**form, "text": "1h"})
        assert (stale.status, "edited after you read it" in alert(stale)) == (409, True)
        assert stale.form_of(deed)["text"] == ["1h"]
        assert browser.post(f"/g/{gate.id}/{deed}", {**form, "text": "1h", "seen": ""}).status == 409
    late = browser.get(f"/g/{gate.id}").form_of("stop")
    alone.answer(gate, "Postgres")
    assert browser.post(f"/g/{gate.id}/stop", {**late, "text": "no"}).status == 409
    assert [entry.name for entry in alone.now(gate).history[1:]] == ["edited", "answered"]


def alert(reply: WebReply) -> str:
    """What is wrong, as the page says it."""
    return reply.text.partition('role="alert"')[2].partition("</p>")[0]


def test_what_waits_is_listed(alone: Seat, browser: FormBrowser) -> None:
    """The most pressing first, with how long it has still; what was answered stands below."""
    low, high = asked(alone, TEXT, title="Later"), asked(alone, TEXT, title="Now", priority="urgent")
    done = asked(alone, TEXT, title="Done")
    alone.answer(done)
    alone.clock = time.time
    until = asked(alone, TEXT, title="Until", timeout=7200)
    text = browser.get("/").text
    assert "3 wait for an answer" in text
    line = text.partition(f'href="/g/{until.id}"')[2].partition("</a>")[0]
    assert "due in 2h" in line
    assert text.count("due in ") == 1
    assert text.index(high.id) < text.index(low.id) < text.index("on its way") < text.index(done.id)


def test_nothing_that_an_agent_wrote_is_markup(alone: Seat, browser: FormBrowser) -> None:
    """In titles, questions, options, contexts, names and diffs; what hides is spelt out."""
    bad = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'
    alone.clone.write(f"{'x' * 5}.txt", f"{bad}\n")
    question = Question("answer", bad, "choice", (Option(bad, bad), Option("fine", "")))
    gate = asked(alone, question, title=bad, context=bad)
    for path in ("/", f"/g/{gate.id}"):
        text = browser.get(path).text
        assert "&lt;script&gt;" in text
        assert [word for word in ("<script>", "<img src=x", "\u202e") if word in text] == []


@pytest.mark.slow
def test_runs_and_what_happened_are_shown(alone: Seat, browser: FormBrowser, cli: Command) -> None:
    """A run with its steps and the gate that it waits at; the trail with who said what; a run that is not there."""
    alone.clone.write("flows.py", FLOW)
    alone.clone.git("add", ".")
    alone.clone.commit("a flow")
    cli("run", "flows.py", cwd=alone.clone.path, code=8)
    text = browser.get("/runs").text
    run = text.partition('href="/runs/')[2].partition('"')[0]
    assert "waiting_human" in text
    page = browser.get(f"/runs/{run}").text
    gate = page.partition('href="/g/')[2].partition('"')[0]
    assert "Deploy &lt;b&gt;it?" in page
    assert browser.answer(gate, q0_="no", note="not <i>now").status == 303
    trail = browser.get("/trail").text
    assert gate[:6] in trail
    assert "not &lt;i&gt;now" in trail
    assert browser.get("/runs/zzzz22").status == 404


def test_a_gate_that_is_not_there(browser: FormBrowser) -> None:
    reply = browser.get("/g/zzzz22")
    assert (reply.status, "there is no gate" in reply.text) == (404, True)


def test_looking_changes_nothing(alone: Seat, browser: FormBrowser, site: WebSite) -> None:
    """Whatever opens every address there is, as a scanner does, moves no ref."""
    gate: Gate = asked(alone, TEXT)
    before = alone.clone.refs()
    word, _ = site.logins.new_login()
    for path in (
        "/",
        f"/g/{gate.id}",
        f"/g/{gate.id}/answer?q0.=yes",
        "/logout",
        f"/login?token={word}",
        "/s/web.css",
    ):
        browser.get(path)
    assert alone.clone.refs() == before


def test_a_repository_that_is_gone_is_in_the_way_of_no_other(
    alone: Seat, site: WebSite, tmp_path: Path
) -> None:
    """The lists name it; what the others have is shown, and answered."""
    gate = asked(alone, TEXT)
    site.world = replace(site.world, places=[tmp_path / "gone", *site.world.places])
    browser = FormBrowser(site).log_in()
    for path in ("/", "/runs", "/trail"):
        reply = browser.get(path)
        assert (reply.status, "gone: " in reply.text) == (200, True), path
    assert gate.id in browser.get("/trail").text
    assert browser.answer(gate, q0_="yes").status == 303
    assert "gone is not a directory" in browser.get("/g/2222222222").text
