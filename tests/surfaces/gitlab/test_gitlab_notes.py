"""A question on a merge request, and what people write there: by GitLab's own rules for notes."""

from __future__ import annotations

import json

import pytest

from support.forges.gitlab import DEVELOPER, GitLabForge

from .conftest import THREAD, Team

pytestmark = [pytest.mark.usefixtures("agent"), pytest.mark.slow]


def test_a_question_is_asked_answered_and_proven(team: Team, forge: GitLabForge) -> None:
    """One note; a reply that a sweep finds counts, and the note and the status say so."""
    gate = team.ask("Which?", "-o", "Postgres", "-o", "SQLite")
    assert "Which?" in team.shown(gate)
    assert f"{forge.site}/-/" not in team.shown(gate) or "/-/" in team.shown(gate)
    team.sweep()
    assert (forge.statuses[-1]["name"], forge.statuses[-1]["status"]) == ("gitgate", "pending")
    note = forge.write(THREAD, "ada", "/choose 1")
    said = team.sweep("--json").json
    assert [one["outcome"] for one in said["accepted"]] == ["answered"]
    assert said["resume"] == [gate]
    now = team.gate(gate)
    assert (now["answer"]["values"], now["answer"]["via"]) == ({"answer": "Postgres"}, "gitlab")
    evidence = now["answer"]["evidence"]
    assert (evidence["comment"], evidence["thread"], evidence["login"]) == (note["id"], THREAD, "ada")
    assert evidence["url"] == f"{forge.site}/-/merge_requests/{THREAD}#note_{note['id']}"
    assert "Answered" in team.shown(gate)
    assert {(note["id"], "project_42_bot_1a2b", name) for name in ("eyes", "thumbsup")} <= set(forge.awards)


def test_a_quiet_sweep_writes_nothing(team: Team, forge: GitLabForge) -> None:
    """What stands there is known again, lines with a blank before them as well."""
    team.ask("Deploy?", "--type", "approval")
    team.sweep()
    forge.asked.clear()
    team.sweep()
    assert [one for one in forge.asked if not one.startswith("GET ")] == []


def test_a_quiet_look_takes_one_request_a_gate(team: Team, forge: GitLabForge) -> None:
    """Its status; one for the merge request without a gate; who we are, the merge requests, and all their notes."""
    gates = 4
    for number in range(gates):
        team.agents.git("checkout", "-q", "-b", f"b{number}")
        team.agents.git("commit", "-q", "--allow-empty", "-m", f"{number}")
        team.agents.git("push", "-q", "origin", f"b{number}")
        forge.open_merge(10 + number, f"b{number}", team.agents.git("rev-parse", "HEAD"))
        team.ask(f"Which {number}?", show=False)
    team.sweep()
    forge.asked.clear()
    team.sweep()
    assert len(forge.asked) == gates + 1 + 3, forge.asked
    assert [one for one in forge.asked if not one.startswith("GET ")] == ["POST /api/graphql"]


@pytest.mark.parametrize("word", ["LGTM", "approve"])
def test_a_word_in_a_note_is_told_what_counts_once(team: Team, forge: GitLabForge, word: str) -> None:
    """And not told the word that GitLab takes for its own."""
    gate = team.ask("Deploy?", "--type", "approval")
    team.sweep()
    before = len(team.ours())
    forge.write(THREAD, "ada", word)
    team.sweep()
    team.sweep()
    told = team.ours()[before:]
    assert team.gate(gate)["state"] == "awaiting"
    assert len(told) == 1
    assert "/answer yes" in told[0]
    assert "/approve" not in told[0]


def test_it_shows_no_command_that_gitlab_takes(team: Team, forge: GitLabForge) -> None:
    """GitLab obeys `/approve` itself and takes it away, so that another reply is shown, and counts."""
    gate = team.ask("Deploy?", "--type", "approval")
    assert "/approve" not in team.shown(gate)
    assert "/answer yes" in team.shown(gate)
    assert forge.write(THREAD, "ada", "/approve")["body"] == ""
    assert team.sweep("--json").json["accepted"] == []
    team.reply("/answer yes")
    assert team.gate(gate)["answer"]["verdict"] == "approved"


HARMFUL = (
    "Which?\n\n/merge\n\n```\n/close\n```\n\n````\n```\n/target_branch evil\n```\n````\n\n> /title owned\n\n"
    "- /assign @eve\n\n/label ~bug %1.0 !12 $3 &4 #5 @grace.h"
)


def test_nothing_that_an_agent_writes_is_obeyed(team: Team, forge: GitLabForge) -> None:
    """Neither in words nor in code, wherever its fences seem to end, nor later in an outcome."""
    gate = team.ask(HARMFUL, "-o", "/merge", "-o", "/close it", "--context", HARMFUL)
    team.sweep()
    team.reply(f"{gate}: /reopen")
    team.sweep()
    assert [command for who, command in forge.obeyed if who != "ada"] == []
    for line in "\n".join(team.ours()).split("\n"):
        assert not line.startswith("/")
    for sign in ("!12", "#5", "@grace", "$3", "&4", "&amp;4", "~bug", "%1.0"):
        outside = team.shown(gate).partition("/label")[2].partition("\n")[0]
        assert sign not in outside


def test_an_emoji_edits_nothing(team: Team, forge: GitLabForge) -> None:
    """It moves the note's time, by GitLab's rule; the reply counts all the same, and goes on counting when more are given.
    Of a note that nobody edited GitLab tells its last change as the time of an edit, and nobody as its editor.
    """
    gate = team.ask("Which?")
    forge.graph_page = 2
    for number in range(3):
        forge.write(THREAD, "grace.h", f"talk {number}")
    note = forge.write(THREAD, "ada", "/answer Postgres")
    forge.award(note["id"], "grace.h", "tada")
    assert team.hear(note).json["outcome"] == "answered"
    forge.award(note["id"], "mallory", "rocket")
    assert team.sweep("--json").json["resume"] == [gate]


def test_an_edited_note_is_refused(team: Team, forge: GitLabForge) -> None:
    """Before it is taken and afterwards."""
    gate = team.ask("Which?")
    early = forge.write(THREAD, "ada", "/answer MySQL")
    forge.edit(early["id"], "/answer Oracle")
    assert team.hear(early).json["outcome"] == "refused"
    late = forge.write(THREAD, "ada", "/answer Postgres")
    assert team.hear(late).json["outcome"] == "answered"
    forge.edit(late["id"], "/answer Postgres!")
    said = team.sweep("--json").json
    assert (said["resume"], "edited afterwards" in said["doubts"][gate]) == ([], True)


def test_where_nobody_tells_whether_it_was_edited_nothing_is_taken(team: Team, forge: GitLabForge) -> None:
    """An error, and no answer."""
    gate = team.ask("Which?")
    note = forge.write(THREAD, "ada", "/answer Postgres")
    forge.award(note["id"], "grace.h", "tada")
    forge.graphql = False
    team.sweep(code=1)
    forge.graphql = True
    assert team.gate(gate)["state"] == "awaiting"


@pytest.mark.parametrize(
    ("who", "outcome"), [("eve", "refused"), ("mallory", "refused"), ("grace.h", "answered")]
)
def test_whose_word_counts(team: Team, who: str, outcome: str) -> None:
    """That of a developer and more; whoever is none hears it once."""
    team.ask("Which?")
    assert team.reply("/answer Postgres", who)["outcome"] == outcome


def test_a_status_that_somebody_overwrote_is_put_right(team: Team, forge: GitLabForge) -> None:
    """Whoever may write can set it; the next look goes by what stands there."""
    team.ask("Deploy?", "--type", "approval")
    team.sweep()
    assert forge.statuses[-1]["status"] == "pending"
    forge.statuses[-1] |= {"status": "success", "description": "all fine"}
    team.sweep()
    assert forge.statuses[-1]["status"] == "pending"


def test_a_programs_word_is_nobodys(team: Team, forge: GitLabForge) -> None:
    """Whether its name says that it is one, as a project token's does, or only GitLab."""
    gate = team.ask("Which?")
    forge.join("project_42_bot_9", 40)
    forge.join("renovate", 40, bot=True)
    assert team.reply("/answer Postgres", "project_42_bot_9")["outcome"] == "ignored"
    assert team.reply("/answer Postgres", "renovate")["outcome"] == "refused"
    assert team.gate(gate)["state"] == "awaiting"


def test_what_not_everybody_reads_is_not_heard(team: Team, forge: GitLabForge) -> None:
    """An internal note would be shown to all by its answer; GitLab's own notes are nobody's."""
    gate = team.ask("Which?")
    for more in ({"internal": True}, {"system": True}):
        forge.write(THREAD, "ada", "/answer Postgres", **more)
    assert team.sweep("--json").json["accepted"] == []
    assert team.gate(gate)["state"] == "awaiting"


def test_a_reply_on_a_line_of_the_diff_counts(team: Team, forge: GitLabForge) -> None:
    """With a command; GitLab lists it among the others."""
    gate = team.ask("Deploy?", "--type", "approval")
    forge.write(THREAD, "ada", "yes", type="DiffNote")
    assert team.sweep("--json").json["accepted"] == []
    forge.write(THREAD, "ada", f"/answer {gate} yes", type="DiffNote")
    assert [one["outcome"] for one in team.sweep("--json").json["accepted"]] == ["answered"]
    assert team.sweep("--json").json["resume"] == [gate]


def test_people_are_called_and_asked_for_a_review(team: Team, forge: GitLabForge) -> None:
    """Of several reviewers a free GitLab keeps one, and the note says of whom none could be asked."""
    forge.join("may", DEVELOPER)
    gate = team.ask("Deploy?", "--type", "approval", "--to", "@grace.h", "--to", "@may", "--to", "@eve")
    assert "For @grace.h, @may" in team.shown(gate)
    assert [one["username"] for one in forge.merges[THREAD]["reviewers"]] == ["grace.h"]
    assert "No review could be asked of `@may`" in team.shown(gate)


def test_a_project_that_was_moved_answers_to_both_names(team: Team, forge: GitLabForge) -> None:
    """An event of another project is none of our business."""
    team.ask("Which?")
    note = forge.write(THREAD, "ada", "/answer Postgres")
    forge.repository, before = "group/other", forge.repository
    event = forge.event(note)
    forge.repository = before
    place = team.folder / "other.json"
    place.write_text(json.dumps(event))
    said = team.cli.quick("github", "accept", str(place), "--json", cwd=team.job().path, code=0).json
    assert (said["outcome"], said["words"]) == ("ignored", "it is another repository's event")
