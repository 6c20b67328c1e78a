"""From a comment to an answer: whose word counts, whose does not, and that both are told."""

from __future__ import annotations

import pytest

from support.resuming import Agent

from .conftest import THREAD, Team

pytestmark = pytest.mark.slow


def test_a_question_is_a_comment_and_a_reply_is_the_answer(team: Team) -> None:
    """Asked, shown once, answered by a comment; the record says who, where and when."""
    gate = team.ask("Which database?", "-o", "Postgres", "-o", "SQLite=one file")
    assert "Which database?" in team.shown(gate)
    assert "/choose 1" in team.shown(gate)
    said = team.reply("/choose 2")
    assert (said["outcome"], said["gate"]) == ("answered", gate)
    now = team.gate(gate)
    assert now["state"] == "answered"
    answer = now["answer"]
    assert (answer["via"], list(answer["values"].values())) == ("github", ["SQLite"])
    ada = team.forge.accounts["ada"]
    assert answer["by"] == f"ada <{ada.number}+ada@users.noreply.127.0.0.1>"
    comment = team.forge.by("ada")[0]
    assert answer["evidence"] == {
        "comment": comment["id"], "url": comment["html_url"], "login": "ada", "account": ada.number,
        "at": comment["created_at"],
    }  # fmt: skip
    assert "### ✅ Answered" in team.shown(gate)
    assert f"[the reply]({comment['html_url']})" in team.shown(gate)
    reactions = [word for number, word, _ in team.forge.reactions if number == comment["id"]]
    assert reactions == ["eyes", "+1"]


def test_who_may_not_write_is_told_once(team: Team) -> None:
    """Row 2: an outsider's `/approve` is no answer, and the thread says so one time only."""
    gate = team.ask("Deploy?", "--type", "approval")
    for _ in range(3):
        assert team.reply("/approve", "eve")["outcome"] == "refused"
    assert len(team.told()) == 1
    assert team.posts() == 2
    assert "no answer" in team.told()[0]
    assert team.gate(gate)["state"] == "awaiting"
    assert team.reply("/approve ship it")["outcome"] == "answered"
    assert team.gate(gate)["answer"]["note"] == "ship it"


@pytest.mark.parametrize(
    ("permission", "counts"), [("admin", True), ("write", True), ("read", False), ("none", False)]
)
def test_permission_is_what_the_forge_says(team: Team, permission: str, counts: bool) -> None:
    """Whatever the event claims about its author, the collaborators API decides."""
    team.forge.accounts["grace"].permission = permission
    gate = team.ask("Deploy?", "--type", "approval")
    team.reply("/approve", "grace")
    assert (team.gate(gate)["state"] == "answered") is counts


def test_an_edited_comment_is_no_answer(team: Team) -> None:
    """Row 3: edited before it was read, it is refused; what counts is the comment now, not the event's copy of it."""
    gate = team.ask("Deploy?", "--type", "approval")
    comment = dict(team.forge.write(THREAD, "ada", "/reject"))
    team.forge.edit(comment["id"], "/approve")
    assert team.hear(comment).json["outcome"] == "refused"
    assert "edited" in team.told()[0]
    assert team.gate(gate)["state"] == "awaiting"


def test_an_edit_is_no_event_of_ours(team: Team) -> None:
    """Neither is a deletion."""
    team.ask("Deploy?", "--type", "approval")
    comment = team.forge.write(THREAD, "ada", "/approve")
    for action in ("edited", "deleted"):
        assert team.hear(comment, action=action).json["outcome"] == "ignored"


def test_a_comment_that_is_gone_is_no_answer(team: Team) -> None:
    """Deleted before it was read."""
    gate = team.ask("Deploy?", "--type", "approval")
    comment = team.forge.write(THREAD, "ada", "/approve")
    del team.forge.comments[comment["id"]]
    assert team.hear(comment).json["outcome"] == "ignored"
    assert team.gate(gate)["state"] == "awaiting"


def test_a_program_is_nobody(team: Team) -> None:
    """A bot's word is not taken, even if the event says that a person sent it; nor what an app says in a person's name."""
    gate = team.ask("Deploy?", "--type", "approval")
    team.forge.join("helper[bot]", "Bot", "write")
    comment = team.forge.write(THREAD, "helper[bot]", "/approve")
    assert team.hear({**comment, "user": team.forge.accounts["ada"].shape}).json["outcome"] == "ignored"

    assert team.gate(gate)["state"] == "awaiting"


def test_a_second_delivery_changes_nothing(team: Team) -> None:
    """The same event twice is one answer, and nobody is told that they came too late."""
    gate = team.ask("Which?")
    comment = team.forge.write(THREAD, "ada", "/answer Postgres")
    assert team.hear(comment).json["outcome"] == "answered"
    before = team.gate(gate)["tip"]
    assert team.hear(comment).json["outcome"] == "again"
    assert team.gate(gate)["tip"] == before
    assert team.told() == []


@pytest.mark.parametrize(
    ("body", "outcome"), [("/choose 9", "unclear"), ("/stop", "unclear"), ("/choose 2", "late")]
)
def test_a_second_delivery_tells_nobody_twice(team: Team, body: str, outcome: str) -> None:
    """Not even for the moment until it is taken back: people are notified of whatever is posted."""
    gate = team.ask("Which?", "-o", "Postgres", "-o", "SQLite", "--no-other")
    if outcome == "late":
        team.reply("/choose 1", "grace")
    comment = team.forge.write(THREAD, "ada", body)
    assert team.hear(comment).json["outcome"] == outcome
    before = team.posts()
    for _ in range(2):
        assert team.hear(comment).json["outcome"] in (outcome, "refused")
    assert (before, team.posts(), len(team.told())) == (2, 2, 1)
    assert team.gate(gate)["state"] == ("answered" if outcome == "late" else "awaiting")


def test_the_second_person_is_told_who_was_first(team: Team) -> None:
    """One answer; the other reply gets a word."""
    team.ask("Which?")
    team.reply("/answer Postgres")
    assert team.reply("/answer SQLite", "grace")["outcome"] == "late"
    assert "ada was first" in team.told()[0]


def test_an_archived_gate_is_too_late(team: Team) -> None:
    """Where the archive is known, whoever names it is told that it is closed, not that nobody knows it."""
    gate = team.ask("Which?")
    team.reply("/stop no")
    comment = team.forge.write(THREAD, "grace", f"{gate}: Postgres")
    event = team.event_file(team.forge.event(comment))
    here = team.agents.path
    for verb in (("sync",), ("archive", "--older-than", "0s")):
        team.cli.quick(*verb, cwd=here, code=0)
    said = team.cli.quick("github", "accept", str(event), "--json", cwd=here, code=0)
    assert said.json["outcome"] == "late"
    assert f"gate {gate} is closed and archived; it was stopped" in team.told()[-1]


def test_what_cannot_be_understood_is_told_with_an_example(team: Team) -> None:
    """One short reply shows what would be understood; the next one is taken."""
    gate = team.ask("Which?", "-o", "Postgres", "-o", "SQLite", "--no-other")
    assert team.reply("/choose 9")["outcome"] == "unclear"
    assert "/choose 1" in team.told()[0]
    assert team.reply("/approve")["outcome"] == "unclear"
    assert team.reply("/choose sqlite")["outcome"] == "answered"
    assert list(team.gate(gate)["answer"]["values"].values()) == ["SQLite"]


@pytest.mark.parametrize(
    "body", ["/approved", "LGTM /approve", "/approve?", "/approve\n/reject", "<div>\n/approve\n</div>"]
)
def test_what_is_almost_a_reply_is_told_what_would_be(team: Team, body: str) -> None:
    """Every way to answer the gate that waits, ready to copy; seen, told once, also by sweeps; and nothing is recorded."""
    gate = team.ask("Deploy?", "--type", "approval")
    comment = team.forge.write(THREAD, "ada", body)
    for outcome in ("unclear", "unclear"):
        assert team.hear(comment).json["outcome"] == outcome
    assert team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json["accepted"] == []
    (told,) = team.told()
    for way in ("\n/approve\n", "\n/reject why not\n", "\n/stop why"):
        assert way in told
    assert "name the gate" not in told
    assert team.posts() == 2
    assert ("one reply" in told) is ("/reject" in body)
    assert team.gate(gate)["state"] == "awaiting"
    assert team.reply("/Approve, looks good.")["outcome"] == "answered"
    assert team.gate(gate)["answer"]["note"] == "looks good."
    assert team.reply(body)["outcome"] == "ignored"  # nothing waits any more


def test_a_sweep_hears_what_is_almost_a_reply(team: Team) -> None:
    """No event told of it; a stranger's costs no word, and hides no real reply of theirs."""
    team.ask("Deploy?", "--type", "approval")
    for login, body in (("eve", "/approved"), ("eve", "/approve"), ("ada", "LGTM /approve")):
        team.forge.write(THREAD, login, body)
    said = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
    assert sorted(one["outcome"] for one in said["accepted"]) == ["refused", "unclear"]
    assert len(team.told()) == 2
    said = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
    assert said["accepted"] == []
    assert len(team.told()) == 2


def test_a_command_that_does_not_fit_is_told_in_the_words_of_replies(team: Team) -> None:
    """Not in a terminal's flags."""
    team.ask("Which?", "-o", "Postgres", "-o", "SQLite")
    assert team.reply("/approve")["outcome"] == "unclear"
    assert "/approve is for approvals" in team.told()[0]
    assert "\n/choose 1\n" in team.told()[0]
    assert "--approve" not in team.told()[0]


WITH_A_NAME = ["for {}: use Postgres", "use Postgres (gate {})", "{} Postgres", "gate **{}** looks odd"]


@pytest.mark.parametrize("body", WITH_A_NAME)
def test_who_names_a_gate_is_told_once_how_to_answer_it(team: Team, body: str) -> None:
    """It may be talk about it: it is no answer, and the next comment of the same person that names it costs no word."""
    gate, other = team.ask("Which?"), team.ask("Why?")
    assert team.reply(body.format(gate))["outcome"] == "unclear"
    (told,) = team.told()
    assert f"`{gate}:`" in told
    assert f"\n/answer {gate} your words\n" in told
    team.reply(f"and {body.format(gate)}")
    team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    assert len(team.told()) == 1
    team.reply(body.format(other))
    assert len(team.told()) == 2
    assert {team.gate(one)["state"] for one in (gate, other)} == {"awaiting"}
    assert team.reply(f"gate {gate}: Postgres")["outcome"] == "answered"
    assert team.reply(body.format(gate), "grace")["outcome"] == "ignored"  # it waits no more
    assert len(team.told()) == 2


def test_whoever_may_not_answer_hears_nothing_of_what_may_be_talk(team: Team) -> None:
    """No word and no eye for an outsider, and no question to the forge about a program."""
    gate = team.ask("Deploy?", "--type", "approval")
    for body in ("/approved", "LGTM /approve", *(words.format(gate) for words in WITH_A_NAME)):
        assert team.reply(body, "eve")["outcome"] == "ignored"
    team.forge.join("helper[bot]", "Bot", "write")
    before = len(team.forge.asked)
    team.reply("/approved", "helper[bot]")
    assert len(team.forge.asked) == before
    assert (team.told(), team.forge.reactions, team.posts()) == ([], [], 1)


def test_with_several_gates_the_reply_names_one(team: Team) -> None:
    """Without a name nobody can tell which is meant."""
    first, second = team.ask("Which?"), team.ask("Deploy?", "--type", "approval")
    assert f"/approve {second}" in team.shown(second)
    assert team.reply("/approve")["outcome"] == "unclear"
    assert f"\n/answer {first} your words\n" in team.told()[0]
    assert f"\n/approve {second}\n" in team.told()[0]
    assert team.reply(f"/approve {second.upper()} all good")["gate"] == second
    assert team.gate(second)["answer"]["note"] == "all good"
    assert team.reply("/answer Postgres")["gate"] == first


def test_an_older_approval_is_no_answer_to_a_later_question(team: Team) -> None:
    """What was said before the question was shown is not about it, however late the event comes."""
    early = team.forge.write(THREAD, "ada", "/approve")
    gate = team.ask("Deploy?", "--type", "approval")
    assert team.hear(early).json["outcome"] == "ignored"
    assert team.gate(gate)["state"] == "awaiting"


def test_a_question_that_changed_is_to_be_read_again(team: Team) -> None:
    """Row 7: terms that moved after the comment was shown make a reply stale; it says so, and nothing is written."""
    gate = team.ask("Deploy?", "--type", "approval")
    team.cli.quick("edit", gate, "--priority", "high", cwd=team.agents.path, code=0)
    assert team.reply("/approve")["outcome"] == "stale"
    assert team.gate(gate)["state"] == "awaiting"
    team.cli.quick("github", "comment", gate, cwd=team.agents.path, code=0)
    assert team.reply("/approve")["outcome"] == "answered"


def test_a_stop_ends_it(team: Team) -> None:
    """With its reason, and who said so."""
    gate = team.ask("Which?")
    assert team.reply("/stop")["outcome"] == "unclear"
    assert team.reply("/stop we do it differently")["outcome"] == "stopped"
    now = team.gate(gate)
    assert now["state"] == "stopped"
    assert now["closing"]["by"].startswith("ada <")
    assert "we do it differently" in now["closing"]["reason"]
    assert "### ⏹️ Stopped" in team.shown(gate)


def test_talk_is_left_alone(team: Team) -> None:
    """A thread is for talking, too: no reaction, no reply, no request."""
    team.ask("Which?")
    before = len(team.forge.asked)
    for body in ("I like Postgres. Is it in src/answer?", "/retest", "thanks", "see `/answer x`"):
        assert team.reply(body)["outcome"] == "ignored"
    assert len(team.forge.asked) == before
    assert team.told() == []


def test_another_repositorys_event_is_ignored(team: Team) -> None:
    """A file that was meant for another repository decides nothing here."""
    team.ask("Which?")
    event = team.forge.event(team.forge.write(THREAD, "ada", "/answer Postgres"))
    event["repository"]["full_name"] = "somebody/else"
    said = team.cli.quick(
        "github", "accept", str(team.event_file(event)), "--json", cwd=team.job().path, code=0
    )
    assert said.json["outcome"] == "ignored"


def test_a_quoted_gate_is_answered_in_plain_words(team: Team) -> None:
    """Quoting our comment, or beginning with the gate's name, says which one is meant."""
    first, second = team.ask("Which database?"), team.ask("Which region?")
    assert team.reply(f"> gate **{first}** · asked by\n\nPostgres")["gate"] == first
    assert team.reply(f"{second}: eu")["gate"] == second
    assert list(team.gate(second)["answer"]["values"].values()) == ["eu"]


def test_answers_on_a_later_page_are_seen(team: Team) -> None:
    """Our comment is found again behind a hundred others."""
    for number in range(130):
        team.forge.write(THREAD, "grace", f"talk {number}")
    gate = team.ask("Which?")
    assert team.reply("/answer Postgres")["outcome"] == "answered"
    team.cli.quick("github", "comment", gate, cwd=team.job().path, code=0)
    assert len([c for c in team.forge.by("github-actions[bot]") if "gate=" in c["body"]]) == 1


@pytest.mark.parametrize(
    "words",
    [
        "escape \x1b[31m and bell \x07", "half of a character \ud800", "reversed \u202e txt.exe", "x" * 65_520,
        "'; $(touch pwned) `id` ${{ secrets.X }} && rm -rf .", "--force -m x", "yes\u2028no\x85x", "- a\n- b: [c, {d}]\n? !!python/x &a *a",
        "@everyone ![x](https://evil.example/x.png) </details>", "\U0001f600" * 8000,
    ],
    ids=range(10),
)  # fmt: skip
def test_hostile_words_are_only_words(team: Team, words: str) -> None:
    """Rows 4, 12, 13: they are the answer, as they were said, and nothing else; where they are shown they do nothing."""
    gate = team.ask("Which?")
    assert team.reply(f"/answer {words}")["outcome"] == "answered"
    (said,) = team.gate(gate)["answer"]["values"].values()
    assert said == words.encode("utf-8", "replace").decode()
    assert not list(team.folder.rglob("pwned"))
    shown = team.shown(gate)
    assert len(shown) < 65_536
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    "words", ["nul \x00", "<!-- hidden -->", "\n<!-- gitgate gate=7k2fw9c3ab", "\n\n \t", "> quoted"]
)
def test_what_is_no_answer_is_told_so(team: Team, words: str) -> None:
    """Hidden, quoted, empty, or what no document can hold: the job goes on, and the author hears of it."""
    gate = team.ask("Which?")
    assert team.reply(f"/answer {words}" if words[0] != ">" else f"/answer\n{words}")["outcome"] == "unclear"
    assert len(team.told()) == 1
    assert team.gate(gate)["state"] == "awaiting"


def test_somebody_whose_token_we_have_may_answer(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine of one's own our comments are in one's own name; they are no replies, and one's replies are."""
    monkeypatch.setenv("GITHUB_TOKEN", "ada-token")
    gate = team.ask("Deploy?", "--type", "approval")
    (ours,) = team.forge.by("ada")
    assert team.hear(ours).json["outcome"] == "ignored"
    assert team.reply("/approve")["outcome"] == "answered"
    assert team.gate(gate)["state"] == "answered"


# the job's own page


def page_of(team: Team, *words: str) -> str:
    """What a command leaves there."""
    page = team.folder / "summary"
    page.unlink(missing_ok=True)
    env = {"GITHUB_STEP_SUMMARY": str(page)}
    team.cli.quick("github", *words, cwd=team.job().path, env=env, code=0)
    return page.read_text(encoding="utf-8")


def test_a_job_that_takes_a_reply_shows_the_gates(team: Team, agent: Agent) -> None:
    """As they are after it; and the job that starts the agent shows what came of it."""
    gate, other = team.ask("Which?"), team.ask("What else?")
    event = str(
        team.event_file(team.forge.event(team.forge.write(THREAD, "ada", f"/answer {gate} Postgres")))
    )
    page = page_of(team, "accept", event)
    assert (f"**answered** {gate} `Which?`" in page, f"**awaiting** {other} `What else?`" in page) == (
        True,
        True,
    )
    page = page_of(team, "resume", gate, "--event", event)
    assert agent.starts == [gate]
    assert (f"**resumed** {gate} `Which?`" in page, f"**awaiting** {other} `What else?`" in page) == (
        True,
        True,
    )


def test_a_job_that_ignores_a_comment_shows_the_gates(team: Team) -> None:
    """Whoever looks at a job wants to know what waits, whatever the job did."""
    gate = team.ask("Which?")
    event = str(team.event_file(team.forge.event(team.forge.write(THREAD, "eve", "/answer MySQL"))))
    assert f"**awaiting** {gate} `Which?`" in page_of(team, "accept", event)
    assert f"**awaiting** {gate} `Which?`" in page_of(team, "status", str(THREAD))


def test_a_job_that_somebody_asked_for_shows_the_gates(team: Team) -> None:
    """An answer from a terminal, which a person vouches for."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    event = {
        "inputs": {"gate": gate, "commit": team.gate(gate)["answer"]["commit"]},
        "repository": {"full_name": team.forge.repository},
        "sender": team.forge.accounts["ada"].shape,
    }
    assert f"**answered** {gate} `Which?`" in page_of(team, "accept", str(team.event_file(event)))
