"""The command line's grammar of an answer, and how `respond` ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone

Ask = Callable[..., str]
DATABASES = ("Which?", "-o", "JWT=stateless", "-o", "Sessions", "-o", "Session tokens")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["JWT"], "JWT"),
        (["jwt"], "JWT"),
        (["j"], "JWT"),
        (["sessions"], "Sessions"),
        (["#3"], "Session tokens"),
        (["-m", "JWT"], "JWT"),
        (["--other", "neither of them"], "neither of them"),
        (["-a", "answer=JWT"], "JWT"),
    ],
)
def test_a_choice_takes(cli: Command, ask: Ask, args: list[str], said: str) -> None:
    """A label in any case, a unique beginning, a number, or with --other one's own words."""
    gate = ask(*DATABASES)
    cli.quick("respond", gate, *args, code=0)
    assert cli.quick("check", gate, code=0).line == said


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["JTW"], 'did you mean JWT?'),
        (["Sess"], '"Sess" could be Sessions or Session tokens'),
        (["#4"], "numbered #1 to #3"),
        (["something else"], "--other"),
        ([""], "an empty answer is not an answer"),
        (["--other", " "], "an empty answer is not an answer"),
        (["--approve"], "this is a choice question"),
        (["JWT", "-m", "JWT"], "give the answer once"),
        (["JWT", "--other", "x"], "give the answer once"),
        (["--approve", "--reject"], "not both"),
        (["-a", "JWT"], "-a takes KEY=VALUE"),
        (["-a", "db=JWT"], "there is no question 'db'"),
        (["-a", "answer=JWT", "-a", "answer=Sessions"], "answered twice"),
        (["use", "JWT", "please"], "several words need quotes"),
    ],
)  # fmt: skip
def test_a_choice_refuses(cli: Command, ask: Ask, args: list[str], words: str) -> None:
    """What does not fit exits 2, says what was expected, and nothing is written."""
    gate = ask(*DATABASES)
    refused = cli.quick("respond", gate, *args, code=2)
    assert words in refused.err
    assert refused.out == ""
    assert cli.quick("check", gate).code == 8


def test_only_the_options(cli: Command, ask: Ask) -> None:
    """With --no-other no free text is taken."""
    gate = ask("Which?", "-o", "A", "-o", "B", "--no-other")
    assert "only the options" in cli.quick("respond", gate, "--other", "C", code=2).err


def test_an_option_with_an_equals_sign(cli: Command, ask: Ask) -> None:
    r"""The first `=` splits label and text; `\=` is literal."""
    gate = ask("Which?", "-o", r"a\=b=means a = b", "-o", "c")
    (question,) = cli.quick("show", gate, "--json").json["questions"]
    assert question["options"][0] == {"label": "a=b", "description": "means a = b"}
    cli.quick("respond", gate, "a=b", code=0)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--approve"], 0, "approved"),
        (["--reject"], 3, "rejected"),
        (["yes"], 0, "approved"),
        (["-m", "no"], 3, "rejected"),
        (["--reject", "--note", "not on a Friday"], 3, "rejected\nnot on a Friday"),
    ],
)
def test_an_approval(cli: Command, ask: Ask, args: list[str], code: int, said: str) -> None:
    """`check` tells yes from no by its exit code and its first line; a note is the next."""
    gate = ask("Deploy?", "--type", "yesno")
    cli.quick("respond", gate, *args, code=0)
    assert cli.quick("check", gate, code=code).out == said + "\n"
    assert cli.quick("wait", gate, code=code).out == said + "\n"


def test_approve_names_the_option_that_means_it(cli: Command, ask: Ask) -> None:
    """On a choice with such an option --approve and --reject are that option."""
    gate = ask("Go on?", "-o", "Continue", "-o", "Stop")
    cli.quick("respond", gate, "--reject", code=0)
    assert cli.quick("check", gate, code=0).line == "Stop"


def test_several_questions(cli: Command, ask_two: str) -> None:
    """-a for each; --approve stands for the only approval; a missing one is named."""
    missing = cli.quick("respond", ask_two, "--approve", code=2)
    assert "no answer for db" in missing.err
    assert f"git gate respond {ask_two} -a db=… -a go=…" in missing.err
    cli.quick("respond", ask_two, "--approve", "-a", "db=post", code=0)
    assert cli.quick("check", ask_two, code=0).out == "db: Postgres\ngo: approved\n"


def test_a_form(cli: Command, ask_form: str) -> None:
    """-a for each field, made what the schema expects; a wrong one is named."""
    assert "count" in cli.quick("respond", ask_form, "-a", "region=eu", "-a", "count=9", code=2).err
    cli.quick("respond", ask_form, "-a", "region=eu", "-a", "count=2", code=0)
    assert cli.quick("check", ask_form).line == '{"region": "eu", "count": 2}'


def test_one_word_alone_is_an_id(cli: Command, ask: Ask) -> None:
    """Even where only one gate waits; the way to say it is told. Without a terminal it names the gate that it took."""
    gate = ask(*DATABASES)
    assert "git gate respond -m JWT" in cli.quick("respond", "JWT", code=1).err
    taken = cli.quick("respond", "-m", "JWT", code=0)
    assert taken.err.startswith(f"gate {gate}: Which?\n")


@pytest.mark.parametrize("waiting", [0, 2])
def test_one_word_where_none_or_several_wait(cli: Command, ask: Ask, waiting: int) -> None:
    """There is no only gate that it could answer; what there is, a list tells."""
    answered = ask("Over?")
    cli.quick("respond", answered, "words", code=0)
    for number in range(waiting):
        ask(f"Which {number}?")
    refused = cli.quick("respond", "hello", code=1).err
    assert "'hello' is not a gate's id" in refused
    assert "git gate list" in refused
    assert "respond -m" not in refused


def test_several_wait_and_none_is_named(cli: Command, ask: Ask) -> None:
    """Their ids are told; nothing is guessed."""
    gates = [ask("One?"), ask("Two?")]
    refused = cli.quick("respond", "-m", "words", code=1)
    assert all(gate[:6] in refused.err for gate in gates)


def test_answered_already(cli: Command, ask: Ask) -> None:
    """Exit 5, with who was first; --amend corrects one's own."""
    gate = ask(*DATABASES)
    cli.quick("respond", gate, "JWT", code=0)
    again = cli.quick("respond", gate, "Sessions", code=5)
    assert "already answered; by Ada Lovelace" in again.err
    cli.quick("respond", gate, "Sessions", "--amend", code=0)
    assert cli.quick("check", gate).line == "Sessions"


@pytest.mark.parametrize(
    "verb",
    [
        ("respond", "--approve"), ("comment", "words"), ("edit", "--priority", "high"), ("stop", "--reason", "x"),
        ("signal", "--status", "CONTINUE"), ("withdraw", "--reason", "x"), ("resume",), ("watch",),
    ],
)  # fmt: skip
def test_an_archived_gate_is_closed(cli: Command, ask: Ask, verb: tuple[str, ...]) -> None:
    """Whatever would change it exits 5, as before it was folded away, and names what still reads it."""
    gate = ask("Deploy?", "--type", "approval")
    cli.quick("stop", gate, "--reason", "x", code=0)
    cli.quick("archive", "--older-than", "0s", code=0)
    refused = cli.quick(verb[0], gate, *verb[1:], code=5).err
    assert f"gate {gate} is closed and archived; it was stopped" in refused
    assert f"git gate show {gate}" in refused


def test_a_changed_gate_is_stale(cli: Command, ask: Ask) -> None:
    """An answer to what was read before the terms changed exits 6, and nothing is written."""
    gate = ask(*DATABASES)
    seen = cli.quick("show", gate, "--json").json["tip"]
    cli.quick("edit", gate, "--priority", "urgent", code=0)
    cli.quick("respond", gate, "JWT", "--seen", seen, code=6)
    cli.quick("respond", gate, "JWT", "--seen", "0" * 40, code=6)
    assert cli.quick("check", gate).code == 8


@pytest.mark.parametrize("marker", ["CLAUDECODE", "CODEX_SANDBOX", "GITGATE_AGENT"])
@pytest.mark.parametrize(
    "verb", [["respond", "--approve"], ["stop", "--reason", "x"], ["signal", "--status", "CONTINUE"]]
)
def test_an_agent_does_not_answer(cli: Command, ask: Ask, marker: str, verb: list[str]) -> None:
    """Inside an agent's process tree it exits 4."""
    gate = ask("Deploy?", "--type", "approval")
    refused = cli.quick(verb[0], gate, *verb[1:], env={marker: "1"}, code=4)
    assert "for people" in refused.err
    assert cli.quick("check", gate).code == 8


def test_a_template(cli: Command, repo: Clone, ask: Ask) -> None:
    """A prepared answer from this machine's configuration; an unknown one names those that are there."""
    repo.git("config", "gitgate.template.Staging", "Sessions")
    gate = ask(*DATABASES)
    assert "prepared here: staging" in cli.quick("respond", gate, "--template", "other", code=2).err
    assert "nothing else" in cli.quick("respond", gate, "JWT", "--template", "staging", code=2).err
    cli.quick("respond", gate, "--template", "Staging", code=0)
    assert cli.quick("check", gate).line == "Sessions"


def test_a_template_in_the_working_tree_grants_nothing(cli: Command, repo: Clone, ask: Ask) -> None:
    """A file that an agent can write prepares no answer."""
    repo.write(".gitgate.yml", "template:\n  go: approve\n")
    gate = ask("Deploy?", "--type", "approval")
    cli.quick("respond", gate, "--template", "go", code=2)


class TestEndings:
    """The last line of an answer says where it is and what acts on it."""

    def test_nothing_resumes_it(self, cli: Command, ask: Ask) -> None:
        """No remote, a saved session: the command to type is named."""
        gate = ask("Which?", "--session", "abcd-1234")
        last = cli.quick("respond", gate, "words", code=0).err.splitlines()
        assert f"nothing will resume this by itself: git gate resume {gate[:4]}" in "\n".join(last)

    def test_pushed(self, cli: Command, bare: Clone, clone_of: Callable[..., Clone], ask: Ask) -> None:
        """A remote whose hook said nothing of resuming promises nothing: the command to type is named."""
        clone = clone_of(bare)
        gate = ask("Which?", "--session", "abcd-1234", cwd=clone.path)
        said = cli.quick("respond", gate, "words", cwd=clone.path, code=0)
        assert f"gate {gate} answered: pushed to origin; no hook there said that it resumes it" in said.err
        assert f"nothing will resume this by itself: git gate resume {gate[:4]}" in said.err

    @pytest.mark.parametrize("session", [[], ["--session", "abcd-1234"]])
    def test_saved_only(
        self, cli: Command, bare: Clone, clone_of: Callable[..., Clone], ask: Ask, session: list[str]
    ) -> None:
        """Not pushed, wanted or not: how to push it. A remote that is away is a warning, and with --push a failure."""
        clone = clone_of(bare)
        gate = ask("Which?", *session, cwd=clone.path)
        said = cli.quick("respond", gate, "words", "--no-push", cwd=clone.path, code=0)
        assert f"gate {gate} answered: saved, not pushed: git gate sync" in said.err
        clone.git("remote", "set-url", "origin", "file:///nonexistent/x.git")
        away = cli.quick("respond", gate, "other words", "--amend", "--json", cwd=clone.path, code=0)
        assert away.json["pushed"] is False
        assert "warning: not pushed" in away.err
        assert "saved, not pushed: git gate sync" in away.err
        failed = cli.quick("respond", gate, "third words", "--amend", "--push", cwd=clone.path, code=1)
        assert "safe here, but not pushed" in failed.err
        assert cli.quick("check", gate, cwd=clone.path).line == "third words"


class TestMany:
    """One answer for all that match."""

    def test_each_is_answered(self, cli: Command, ask: Ask) -> None:
        """Those that match are answered, the others wait; the JSON list has each fate."""
        deploys = {ask(f"Deploy {name}?", "--type", "approval") for name in ("api", "web")}
        other = ask("Delete the database?", "--type", "approval")
        done = cli.quick("respond", "--each", "--match", "deploy", "--approve", "--json", code=0).json
        assert done["schema"] == "gitgate.answers/v1"
        assert {one["id"] for one in done["gates"]} == deploys
        assert {one["gate"]["answer"]["verdict"] for one in done["gates"]} == {"approved"}
        assert cli.quick("check", other).code == 8

    def test_the_worst_decides(self, cli: Command, ask: Ask) -> None:
        """One that it does not fit is named and left alone; the exit code is its."""
        fits, does_not = (
            ask("Deploy api?", "--type", "approval"),
            ask("Deploy where?", "-o", "eu", "-o", "us"),
        )
        done = cli.quick("respond", "--each", "--match", "deploy", "--approve", code=2)
        lines = {line.split()[0]: line for line in done.out.splitlines()}
        assert "approved" in lines[fits]
        assert "this is a choice question" in lines[does_not]
        assert cli.quick("check", does_not).code == 8

    def test_one_vote_of_several_is_called_that(self, cli: Command, ask: Ask) -> None:
        """It has not decided anything."""
        ask("Deploy api?", "--type", "approval", "--quorum", "2")
        said = cli.quick("respond", "--each", "--match", "deploy", "--approve", code=0).out
        assert "your answer is one of the 2 answers alike that are needed" in said

    def test_they_travel_together(
        self, cli: Command, bare: Clone, clone_of: Callable[..., Clone], ask: Ask
    ) -> None:
        """All of them reach the shared repository; where it is away each is saved."""
        clone = clone_of(bare)
        gates = {ask(f"Deploy {number}?", "--type", "approval", cwd=clone.path) for number in range(3)}
        done = cli.quick("respond", "--match", "deploy", "--approve", "--json", cwd=clone.path, code=0).json
        assert [one["gate"]["pushed"] for one in done["gates"]] == [True] * 3
        states = {cli.quick("check", gate, cwd=bare.path).out for gate in gates}
        assert states == {"approved\n"}
        ask("Deploy again?", "--type", "approval", cwd=clone.path)
        clone.git("remote", "set-url", "origin", "file:///nonexistent/x.git")
        saved = cli.quick("respond", "--match", "again", "--approve", cwd=clone.path, code=0)
        assert "saved, not pushed: git gate sync" in saved.out

    @pytest.mark.parametrize(
        ("args", "code", "words"),
        [
            (["--each", "--approve"], 2, "--match TEXT"),
            (["--each"], 2, "no terminal"),
            (["--each", "--match", "nothing like it", "--approve"], 1, "no waiting gate has"),
            (["--match", "x", "--approve", "--amend"], 2, "--amend is about one gate"),
            (["--match", "", "--approve"], 2, "--match is empty"),
        ],
    )
    def test_wrong_use(self, cli: Command, ask: Ask, args: list[str], code: int, words: str) -> None:
        """Which gates has to be said; nothing is answered by accident."""
        gate = ask("Deploy?", "--type", "approval")
        assert words in cli.quick("respond", *args, code=code).err
        assert words in cli.quick("respond", *args, "--json", code=code).json["error"]["message"]
        assert cli.quick("check", gate).code == 8
        assert "cannot stand beside it" in cli.quick("respond", gate, "--each", "--approve", code=2).err


def test_later_is_no_answer(cli: Command, ask: Ask) -> None:
    """It waits on, behind the others, and says until when; whoever had read it may still answer, and it may come back at once."""
    first, second = ask("Which port?"), ask("Which host?")
    seen = cli.quick("show", first, "--json", code=0).json["tip"]
    said = cli.quick("respond", first, "--later", "2h", "--json", code=8)
    until = said.json["later"]
    assert f"later until {until}" in said.err
    assert cli.quick("show", first, "--json", code=0).json["later"] == until
    listed = cli.quick("list", code=0).out.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [second, first]
    assert f"later until {until[:16]}Z" in listed[2]
    assert f"later until {until[:16]}Z" in cli.quick("show", first, code=0).out
    assert f"later until {until}" in cli.quick("log", first, code=0).out
    cli.quick("edit", first, "--later", "now", code=0)
    assert cli.quick("show", first, "--json", code=0).json["later"] is None
    cli.quick("edit", first, "--later", "3h", code=0)
    cli.quick("respond", first, "8080", "--seen", seen, code=0)
    assert cli.quick("check", first, code=0).line == "8080"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--later", "2h", "-m", "8080"), "--later is no answer"),
        (("--later", "soon"), "--later: expected a duration"),
        (("--later", "0s"), "for some time"),
    ],
)
def test_later_takes_a_time_alone(cli: Command, ask: Ask, args: tuple[str, ...], words: str) -> None:
    """And leaves the gate as it was where it is given anything else."""
    gate = ask("Which port?")
    assert words in cli.quick("respond", gate, *args, code=2).err
    assert cli.quick("show", gate, "--json", code=0).json["later"] is None


def test_an_agent_puts_nothing_aside(cli: Command, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not its own question either; a deadline that comes first is told to whoever puts one aside."""
    gate = ask("Which port?", "--timeout", "1h")
    monkeypatch.setenv("GITGATE_AGENT", cli.quick("show", gate, "--json", code=0).json["asked"]["agent"])
    assert "an agent puts no question aside" in cli.quick("edit", gate, "--later", "2h", code=4).err
    monkeypatch.delenv("GITGATE_AGENT")
    assert "its deadline comes first" in cli.quick("respond", gate, "--later", "2h", code=8).err


def test_what_was_put_aside_is_so_for_others(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone]
) -> None:
    """A server takes it where it would take an edit, and every clone hears of it."""
    cli.quick("init", "--server", cwd=bare.path, code=0)
    ann, bob = clone_of(bare, "ann"), clone_of(bare, "bob")
    gate = cli.quick("ask", "Which port?", cwd=ann.path, code=0).line
    cli.quick("sync", cwd=bob.path, code=0)
    until = cli.quick("respond", gate, "--later", "2h", "--json", cwd=bob.path, code=8).json["later"]
    cli.quick("sync", cwd=ann.path, code=0)
    assert cli.quick("show", gate, "--json", cwd=ann.path, code=0).json["later"] == until
    cli.quick("verify", cwd=bare.path, code=0)
