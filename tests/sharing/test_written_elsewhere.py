"""Another program writes gates by docs/protocol.md, with plain git and nothing of ours: a server with our hook takes them.

Its subjects are read from the page's own table, and its examples are pushed as they stand there.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

pytestmark = pytest.mark.slow  # real pushes, through the real hook

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("### Messages\n")[2].partition("\n## ")[0]
SUBJECTS = re.findall(r"^\| (.+) \| `(<.+)` \|$", SECTION, re.MULTILINE)
EXAMPLES = re.findall(r"^```(?:yaml)?\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
ALPHABET = "23456789abcdefghijkmnpqrstuvwxyz"
ASKED = {"agent": "scout", "by": "Ada <ada@example.org>", "at": "2030-01-31T14:05:00Z"}
BOB = "Bob <bob@example.org>"
AT = "2030-01-31T14:06:00Z"


def id_of(question: bytes) -> str:
    number = int.from_bytes(hashlib.sha256(question).digest()[:8], "big") & (2**50 - 1)
    return "".join(ALPHABET[(number >> 5 * place) & 31] for place in range(10))


def one_line(text: str, most: int) -> str:
    kept = (" " if unicodedata.category(c)[0] in "CZ" else c for c in text.replace("\u200d", ""))
    line = " ".join("".join(kept).split())
    data = line.encode()
    return line if len(data) <= most else data[: most - 3].decode(errors="ignore").rstrip() + "\u2026"


def template(event: str, said: dict[str, Any]) -> str:
    """The row of the page's table that tells of such an event."""
    for rows, form in SUBJECTS:
        if "`timeout`" in rows:
            continue
        named = f"`{event}`" in rows
        if named and ("with a `text`" not in rows or said.get("text")):
            return str(form)
    return str(next(form for rows, form in SUBJECTS if rows.startswith("all others")))


@dataclass
class Writer:
    """Writes one gate, event by event, and says itself what each amounts to."""

    clone: Clone
    question: dict[str, Any]
    id: str = ""
    tip: str = ""
    now: dict[str, str] = field(default_factory=dict)

    def ask(self) -> None:
        data = json.dumps(self.question).encode()
        self.id, asked = id_of(data), self.question["asked"]
        work, questions = self.question.get("work", {}), self.question["questions"]
        self.now = {
            "Gate": self.id,
            "Title": self.question["title"],
            "Question": questions[0]["prompt"],
            "Questions": str(len(questions)),
            "Type": ",".join(dict.fromkeys(one["type"] for one in questions)),
            "Agent": asked.get("agent", ""),
            "Asked-By": asked.get("by", ""),
            "Asked-At": asked["at"],
            "Branch": work.get("branch", ""),
            "Head": work.get("base", ""),
            "Priority": self.question.get("priority", "normal"),
            "To": ", ".join(self.question.get("to", [])),
            "Deadline": self.question.get("deadline", ""),
            "Delivery": self.question.get("delivery", "none"),
            "On-Timeout": self.question.get("on_timeout", "stuck"),
            "Pull-Request": str(self.question.get("config", {}).get("pull_request", "")),
        }
        self.add("question.yaml", data, "opened", State="awaiting")

    def add(self, path: str, data: bytes, event: str, **after: str) -> None:
        """One commit that adds one file."""
        self.now.update(Event=event, **after)
        if self.now["State"] != "awaiting":
            self.now["Deadline"] = ""
        said = json.loads(data)
        git = self.clone.git
        blob = git("hash-object", "-w", "--stdin", input=data.decode())
        git("read-tree", *([self.tip] if self.tip else ["--empty"]))
        git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        tree = git("write-tree")
        git("read-tree", "--empty")
        parents = ("-p", self.tip) if self.tip else ()
        self.tip = git("commit-tree", tree, *parents, input=self.message(event, said))

    def subject(self, event: str, said: dict[str, Any]) -> str:
        agent = self.question["asked"].get("agent", "")
        by = said.get("by", "") or agent
        person = by.partition(" <")[0]
        words = {
            "event": event,
            "agent": agent or "an agent",
            "person": person or ("nobody" if said.get("text") else ""),
            "title": self.question["title"],
            "text": said.get("text", ""),
        }
        return re.sub(r"<(\w+)>", lambda found: words[found[1]], template(event, said))

    def message(self, event: str, said: dict[str, Any]) -> str:
        lines = [f"Hitl-{name}: {one_line(value, 200)}" for name, value in self.now.items() if value]
        return f"{one_line(self.subject(event, said), 120)}\n\n" + "\n".join(lines) + "\n"

    def say(self, folder: str, event: str, said: dict[str, Any], **after: str) -> None:
        data = json.dumps({"hitl": 1, "at": AT, **said}).encode()
        name = hashlib.sha256(data).hexdigest()[:16]
        self.add(f"{folder}/{name}.yaml", data, event, **after)

    def answer(
        self, value: object, event: str, verdict: str = "answered", by: str = BOB, **after: str
    ) -> None:
        said = {"gate": self.id, "values": {"answer": value}, "verdict": verdict, "by": by, "seen": self.tip}
        self.say("answers", event, said, **after)

    def push(self) -> None:
        self.clone.git("push", "-q", "origin", f"{self.tip}:refs/hitl/open/{self.id}")


@pytest.fixture
def clone(bare: Clone, clone_of: Callable[..., Clone], cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return clone_of(bare, "elsewhere")


def question(kind: str = "text", **more: Any) -> dict[str, Any]:
    title = more.pop("title", "Which database?")
    asked = more.pop("asked", ASKED)
    one = {"key": "answer", "prompt": "Which?", "type": kind, **more.pop("one", {})}
    return {"hitl": 1, "title": title, "questions": [one], "asked": asked, "nonce": "7f1d", **more}


def test_a_whole_course(clone: Clone, cli: Command) -> None:
    """A comment, other terms, votes that differ and agree, one that came late, and the end: each is taken as it is pushed."""
    one = Writer(clone, question("approval", quorum=2, deadline="2030-02-01T00:00:00Z", to=["ada", "bob"]))
    one.ask()
    one.push()
    one.say("comments", "commented", {"by": BOB, "text": "which one\u200b do you\n mean?" + " really" * 40})
    one.say("comments", "commented", {"by": BOB})
    one.push()
    one.say("edits", "edited", {"by": BOB, "priority": "high", "to": ["bob"]}, Priority="high", To="bob")
    one.answer(True, "voted", "approved")
    one.push()
    one.answer(
        True, "answered", "approved", by=ASKED["by"], State="answered", Verdict="approved", Closed="yes"
    )
    one.push()
    shown = cli.quick("show", one.id, "--json", cwd=clone.path, code=0).json
    assert (shown["state"], shown["answer"]["verdict"]) == ("answered", "approved")
    assert cli.quick("verify", one.id, cwd=clone.path, code=0).err.endswith("nothing is wrong\n")


@pytest.mark.parametrize(("folder", "event"), [("stops", "stopped"), ("withdrawals", "withdrawn")])
@pytest.mark.parametrize("text", ["", "we do it\tdifferently \u202e"])
def test_an_end(clone: Clone, folder: str, event: str, text: str) -> None:
    """With words and without; of an agent without a name."""
    asked = {"at": ASKED["at"]}
    one = Writer(clone, question(title="\u00fc" * 90, asked=asked, delivery="resume"))
    one.ask()
    said = {"by": BOB, **({"text": text} if text else {})}
    one.say(folder, event, said, State=event, Closed="yes")
    one.push()


def test_silence(clone: Clone) -> None:
    """Nobody answered: what the deadline brings is nobody's."""
    due = {"deadline": "2020-01-01T00:00:00Z"}
    one = Writer(clone, question(**due))
    one.ask()
    one.say("expiries", "expired", {"at": due["deadline"], "text": "over"}, State="expired", Closed="yes")
    one.push()
    two = Writer(clone, question(**due, on_timeout="default", one={"default": "Postgres"}))
    two.ask()
    said = {
        "gate": two.id,
        "values": {"answer": "Postgres"},
        "verdict": "defaulted",
        "seen": two.tip,
        "at": due["deadline"],
    }
    two.say("answers", "defaulted", said, State="answered", Verdict="defaulted", Closed="yes")
    two.push()


@pytest.mark.parametrize(
    ("meant", "written"),
    [
        ("answered by Bob", "answered by Ada"),
        ("answered by Bob", "approved by Bob"),
        ("Hitl-State: answered", "Hitl-State: awaiting"),
        ("Hitl-Verdict: answered\n", ""),
        ("Hitl-Title: Which database?", "Hitl-Title: Which  database?"),
        ("\n\nHitl-Gate", "\n\nReviewed\n\nHitl-Gate"),
    ],
)
def test_anything_else_is_refused(clone: Clone, meant: str, written: str) -> None:
    """Another name, event or state, one that is left out, or more words than there are: the hook says which."""
    one = Writer(clone, question())
    one.ask()
    honest = one.message

    def message(event: str, said: dict[str, Any]) -> str:
        text = honest(event, said)
        assert event == "opened" or meant in text
        return text if event == "opened" else text.replace(meant, written)

    one.message = message  # type: ignore[method-assign]
    one.answer("Postgres", "answered", State="answered", Verdict="answered", Closed="yes")
    with pytest.raises(GitError, match=r"its subject is|its message"):
        one.push()


def test_the_examples_of_the_page_are_taken(clone: Clone, bare: Clone, cli: Command) -> None:
    """Byte for byte: the two files, and the messages of their commits."""
    asked, answered, first, second = EXAMPLES
    gate = id_of(asked.encode())
    assert f"gate: {gate}\n" in answered
    git = clone.git
    blob = git("hash-object", "-w", "--stdin", input=asked)
    root = git("commit-tree", git("mktree", input=f"100644 blob {blob}\tquestion.yaml\n"), input=first)
    said = git("hash-object", "-w", "--stdin", input=answered.replace("<the commit of the question>", root))
    folder = git("mktree", input=f"100644 blob {said}\tany-name.yaml\n")
    both = f"100644 blob {blob}\tquestion.yaml\n040000 tree {folder}\tanswers\n"
    tip = git("commit-tree", git("mktree", input=both), "-p", root, input=second)
    git("push", "-q", "origin", f"{root}:refs/hitl/open/{gate}")
    git("push", "-q", "origin", f"{tip}:refs/hitl/open/{gate}")
    assert bare.refs()[f"refs/hitl/open/{gate}"] == tip
    assert cli.quick("check", gate, cwd=bare.path, code=0).line == "Postgres"


def test_the_table_has_a_row_for_each_event() -> None:
    """No event is without a subject; the rows are the ones that are used here."""
    assert [form for _, form in SUBJECTS] == [
        "<agent> asks: <title>",
        "<event>: nobody answered in time",
        "<event> by <person>: <text>",
        "<event>: <text>",
        "<event> by <person>",
    ]
