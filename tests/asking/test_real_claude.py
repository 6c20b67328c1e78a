"""Asking, with the real Claude Code: a scripted model asks, a person answers, and the model sees it. Both versions."""

from __future__ import annotations

import json

import pytest

from lab.model import Reply
from lab.office import Office, rules

from .conftest import MakeOffice

pytestmark = [pytest.mark.claude, pytest.mark.slow]


def asked(text: str, *labels: str, several: bool = False) -> dict[str, object]:
    options = [{"label": label, "description": f"about {label}"} for label in labels]
    return {"question": text, "header": text.split()[1], "multiSelect": several, "options": options}


DATABASE = asked("Which database?", "Postgres", "SQLite")
ASK = Reply("I looked at the code.", [("AskUserQuestion", {"questions": [DATABASE]})], when="GO")
OVER = Reply("Over.", repeat=True)


def answer(office: Office, *said: str) -> str:
    """Answer the gate that waits and resume it; its id."""
    gate = str(office.waiting()["id"])
    office.respond(gate, *said)
    office.resume(gate)
    return gate


def test_a_question_becomes_a_gate_and_its_answer_reaches_the_model(office: MakeOffice) -> None:
    """The run ends, the work and the conversation are kept, and the model goes on with the answer and who gave it."""
    here = office(ASK, OVER)
    here.clone.write("draft.py", "half = 1\n")
    ended = here.run("GO")
    assert ended["stop_reason"] == "tool_deferred"
    gate = here.only()
    assert (gate["state"], gate["delivery"], gate["session"]["saved"]) == ("awaiting", "resume", True)
    (question,) = gate["questions"]
    assert (question["prompt"], question["type"]) == ("Which database?", "choice")
    assert [option["label"] for option in question["options"]] == ["Postgres", "SQLite"]
    assert "I looked at the code." in gate["context"]
    assert gate["work"]["files"] == 1
    assert here.clone.git("status", "--porcelain") == "?? draft.py"
    here.respond(gate["id"], "SQLite", "--note", "one file is enough")
    here.resume(gate["id"])
    assert '\\"Which database?\\"=\\"SQLite\\"' in here.shown
    for words in ("one file is enough", "Ada Lovelace", f"Gate: {gate['id']}", "Decided-by: Ada Lovelace"):
        assert words in here.shown
    assert here.only()["state"] == "resumed"


def test_two_questions_in_one_call(office: MakeOffice) -> None:
    """One gate, an answer for each, also several labels, a label with a comma, and words of one's own."""
    both = [
        asked("Which database?", "Postgres", "SQLite"),
        asked("Which parts, if any?", "API, v2", "Web", several=True),
    ]
    here = office(Reply("", [("AskUserQuestion", {"questions": both})], when="GO"), OVER)
    here.run("GO")
    gate = here.only()
    assert [question["type"] for question in gate["questions"]] == ["choice", "choices"]
    keys = [question["key"] for question in gate["questions"]]
    said = ("-a", f"{keys[0]}=other:DuckDB, if it can", "-a", f"{keys[1]}=#1,Web")
    answer(here, *said)
    shown = json.loads(json.dumps(here.shown)).replace("\\", "")
    assert '"Which database?"="DuckDB, if it can"' in shown
    assert '"Which parts, if any?"=""API, v2", Web"' in shown


def test_a_question_in_a_shell_ends_the_run(office: MakeOffice) -> None:
    """`git gate ask` opens a gate with the session; the run ends there, and goes on with the answer as its next words."""
    command = "git-gate ask 'Which database?' -o Postgres -o SQLite"
    ask = Reply("Asking.", [("Bash", {"command": command})], when="GO")
    here = office(ask, Reply("Thanks.", when="SQLite"))
    ended = here.run("GO", "--allowedTools", "Bash")
    assert ended["terminal_reason"] == "hook_stopped"
    gate = here.only()
    assert (gate["delivery"], gate["session"]["saved"]) == ("resume", True)
    answer(here, "SQLite")
    assert f"gate {gate['id']}" in here.shown
    assert here.only()["resume"]["outcome"] == "resumed"
    assert len(here.machine.model.requests()) == 2


def test_a_second_gate_follows_the_first(office: MakeOffice) -> None:
    """A resumed agent asks again; the new gate names the old one, and is answered in its turn."""
    second = asked("Which port?", "80", "8080")
    here = office(ASK, Reply("", [("AskUserQuestion", {"questions": [second]})], when="Which database"), OVER)
    here.run("GO")
    first = answer(here, "Postgres")
    again = here.waiting()
    assert (again["follows"], again["questions"][0]["prompt"]) == (first, "Which port?")
    answer(here, "8080")
    assert '\\"Which port?\\"=\\"8080\\"' in here.shown
    assert [gate["state"] for gate in here.gates()] == ["resumed", "resumed"]


def test_two_calls_in_one_turn_lose_none(office: MakeOffice) -> None:
    """One waits; the other is told to ask again, does, and both answers reach the model."""
    other = {"questions": [asked("Which port?", "80", "8080")]}
    both = Reply("", [("AskUserQuestion", {"questions": [DATABASE]}), ("AskUserQuestion", other)], when="GO")
    here = office(
        both,
        Reply("", [("AskUserQuestion", other)]),
        Reply("", [("AskUserQuestion", {"questions": [DATABASE]})]),
        OVER,
    )
    here.run("GO")
    first = here.waiting()
    prompts = {"Which database?": "Postgres", "Which port?": "8080"}
    answer(here, prompts[first["questions"][0]["prompt"]])
    assert prompts[first["questions"][0]["prompt"]] in here.shown
    assert "ask this again" in here.shown
    assert here.waiting()["follows"] == first["id"]


TERRAFORM = Reply("Applying.", [("Bash", {"command": "cd . && touch applied # terraform apply"})], when="GO")
RULES = "approvals:\n  - call: Bash(touch applied*)\n    why: it changes production\n"


def test_a_call_that_needs_approval_is_made_when_it_is_given(office: MakeOffice) -> None:
    """Nothing happens before; then the very call is made, once, although nobody else allowed it."""
    here = office(TERRAFORM, OVER)
    rules(here.clone, RULES)
    here.run("GO")
    gate = here.only()
    assert gate["questions"][0]["type"] == "approval"
    assert "touch applied" in gate["questions"][0]["prompt"]
    assert "it changes production" in gate["context"]
    assert not (here.clone.path / "applied").exists()
    answer(here, "--approve")
    assert (here.clone.path / "applied").exists()
    assert "approved" in here.shown


def test_a_call_that_was_refused_is_not_made(office: MakeOffice) -> None:
    """The person's words are its result."""
    here = office(TERRAFORM, OVER)
    rules(here.clone, RULES)
    here.run("GO", "--allowedTools", "Bash")
    answer(here, "--reject", "--note", "not on a friday")
    assert not (here.clone.path / "applied").exists()
    assert "not on a friday" in here.shown
    assert here.only()["answer"]["verdict"] == "rejected"


def test_a_call_of_a_subagent_tells_its_caller(office: MakeOffice) -> None:
    """It cannot wait: nothing is opened and nothing is made, and it is told what to do."""
    task = {
        "description": "look",
        "prompt": "SUB-TASK",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    here = office(
        Reply("", [("Task", task)], when="GO"),
        Reply("", [("Bash", {"command": "touch applied"})], when="SUB-TASK"),
        Reply("", [("Bash", {"command": "git gate ask 'May I?'"})], when="You are a subagent"),
        OVER,
    )
    rules(here.clone, RULES)
    here.run("GO", "--allowedTools", "Bash,Task,Agent")
    said = json.dumps(here.machine.model.requests())
    assert said.count("You are a subagent, and cannot wait") >= 2
    assert not (here.clone.path / "applied").exists()
    assert here.gates() == []


def test_an_agent_does_not_answer_its_own_gate(office: MakeOffice) -> None:
    """The command is refused before it is run, however it is dressed."""
    here = office(
        ASK,
        Reply("", [("Bash", {"command": "env -u CLAUDECODE sh -c 'git gate respond --all'"})]),
        OVER,
    )
    here.run("GO")
    here.run("TWO", "--allowedTools", "Bash")
    assert "is for people" in json.dumps(here.machine.model.requests())
    assert here.only()["state"] == "awaiting"


def test_last_words_that_ask_become_a_gate(office: MakeOffice) -> None:
    """A run that ends with a `needs_input` object has asked, and is resumed with the answer."""
    need = {
        "status": "needs_input",
        "question": "JWT or sessions?",
        "summary": "Auth",
        "details": "registered users",
    }
    here = office(
        Reply("Done so far.\n```json\n" + json.dumps(need) + "\n```", when="GO"),
        Reply("Thanks.", when="JWT, please"),
    )
    here.run("GO")
    gate = here.only()
    assert (gate["title"], gate["questions"][0]["prompt"], gate["delivery"]) == (
        "Auth",
        "JWT or sessions?",
        "resume",
    )
    assert "registered users" in gate["context"]
    answer(here, "JWT, please")
    assert len(here.machine.model.requests()) == 2
    assert len(here.gates()) == 1


def test_a_signal_file_becomes_a_gate_once(office: MakeOffice) -> None:
    """It stays where it is; one from before is nobody's, and an agent that goes on beside it does not ask again."""
    signal = json.dumps({"status": "NEEDS_HUMAN", "reason": "which auth?"})
    write = Reply("", [("Bash", {"command": f"echo '{signal}' > .agents/signals/coder.json"})], when="GO")
    here = office(write, OVER)
    here.clone.write(
        ".agents/signals/older.json", json.dumps({"status": "NEEDS_HUMAN", "reason": "long ago"})
    )
    here.run("GO", "--allowedTools", "Bash")
    gate = here.only()
    assert (gate["questions"][0]["prompt"], gate["asked"]["agent"]) == ("which auth?", "coder")
    answer(here, "sessions")
    assert "sessions" in here.shown
    assert len(here.gates()) == 1
    assert here.clone.git("status", "--porcelain") == "?? .agents/"
