"""Rules that do not count: each holds the call or is told before it, and never one that counts is loosened by what an agent wrote."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import Agent, new_call

DECISION, REASON = "permissionDecision", "permissionDecisionReason"
FILE = ".gitgate.yml"
TERRAFORM = "approvals:\n  - Bash(terraform apply*)\n"


@pytest.fixture
def shared(agent: Agent, bare: Clone) -> Agent:
    """An agent in a clone whose remote's `main` is the protected branch."""
    clone = agent.clone
    clone.git("remote", "add", "origin", str(bare.path))
    publish(agent, None)
    return agent


def publish(agent: Agent, text: str | bytes | None) -> None:
    """What `main` of the remote has as its rules, and this clone as it was last fetched; the working tree stays as it is."""
    clone = agent.clone
    tree = ""
    if text is not None:
        data = text.encode() if isinstance(text, str) else text
        tree = f"100644 blob {clone.git('hash-object', '-w', '--stdin', input=data)}\t{FILE}\n"
    put_tree(clone, tree)


def put_tree(clone: Clone, entries: str) -> None:
    tree = clone.git("mktree", "--missing", input=entries)
    commit = clone.git("commit-tree", tree, "-m", "rules")
    clone.git("update-ref", "refs/remotes/origin/main", commit)


def reply(agent: Agent, command: str = "terraform apply") -> dict[str, Any]:
    return agent.before("Bash", command=command)


def test_rules_of_the_working_tree_alone_hold_their_call(shared: Agent, cli: Command) -> None:
    """Whether the file is tracked or not. Their call alone: whom they name, until when and how many is the agent's word."""
    rule = '{call: Bash(terraform apply*), to: [eve], quorum: 3, timeout: 1s, on_timeout: default, why: "x\\u202ey"}'
    shared.clone.write(FILE, f"approvals:\n  - {rule}\n")
    assert reply(shared)[DECISION] == "defer"
    (gate,) = shared.gates()
    shown = cli("show", gate, "--json").json
    assert (shown["to"], shown["needed"], shown["deadline"]) == ([], 1, None)
    assert "does not count yet" in shown["context"]
    assert "\u202e" not in json.dumps(shown, ensure_ascii=False)
    other = Agent(shared.clone, "0b9c4f0e-0000-4000-8000-000000000000")
    assert reply(other, "terraform plan") == {}


def test_rules_that_are_committed_and_not_pushed_hold_their_call(shared: Agent) -> None:
    """Also where the working tree does not have the file: it was taken away there, or a sparse checkout leaves it out."""
    shared.clone.commit("rules", **{FILE: TERRAFORM})
    (shared.clone.path / FILE).unlink()
    assert reply(shared)[DECISION] == "defer"


@pytest.mark.parametrize("place", ["folder below", "worktree", "sparse", "detached", "no commit yet"])
def test_rules_hold_wherever_an_agent_stands(shared: Agent, place: str) -> None:
    """Those that nobody pushed, from each kind of place in which git has them; in a repository without a commit, in the file."""
    clone, here = shared.clone, shared.clone.path
    if place == "no commit yet":
        clone.git("checkout", "-q", "--orphan", "new")
        clone.write(FILE, TERRAFORM)
    else:
        clone.git("checkout", "-q", "-b", "agent")
        clone.commit("rules", **{FILE: TERRAFORM, "pkg/web/page.html": ""})
    if place == "folder below":
        here = here / "pkg" / "web"
    elif place == "worktree":
        clone.git("checkout", "-q", "--detach", "agent~1")
        here = here.parent / "beside"
        clone.git("worktree", "add", "-q", str(here), "agent")
        (here / FILE).unlink()
    elif place == "sparse":
        clone.git("sparse-checkout", "set", "--no-cone", "/*", f"!/{FILE}")
        assert not (here / FILE).exists()
    elif place == "detached":
        clone.git("checkout", "-q", "--detach")
        clone.git("rm", "-q", "--cached", FILE)
        (here / FILE).unlink()
    assert shared.before("Bash", command="terraform apply", cwd=str(here))[DECISION] == "defer"


def test_rules_of_the_folder_that_it_was_started_in_hold_it_in_another_working_tree(shared: Agent) -> None:
    """A worktree of the same repository is not a way out of them."""
    shared.clone.write(FILE, TERRAFORM)
    shared.clone.git("worktree", "add", "-q", "--detach", "../beside")
    shared.env["CLAUDE_PROJECT_DIR"] = str(shared.clone.path)
    said = shared.before("Bash", command="terraform apply", cwd=str(shared.clone.path.parent / "beside"))
    assert said[DECISION] == "defer"


@pytest.mark.parametrize(
    ("rule", "tool", "given"),
    [
        ("bash(terraform apply*)", "Bash", {"command": "terraform apply"}),
        ("BASH(terraform apply*)", "Bash", {"command": "terraform apply"}),
        ("b*h(terraform apply*)", "Bash", {"command": "terraform apply"}),
        ("wRITE(db/**)", "Edit", {"file_path": "db/x"}),
        ("MCP__DB__*", "mcp__db__drop", {}),
        ("Frobnicate(*)", "frobnicate", {"a": "b"}),
    ],
)
def test_tools_are_compared_without_case(shared: Agent, rule: str, tool: str, given: dict[str, str]) -> None:
    """Another program's tool may have any name, and is a tool of that name."""
    publish(shared, f"approvals:\n  - {rule}\n")
    assert shared.before(tool, **given)[DECISION] == "defer"


@pytest.mark.parametrize(
    "text",
    [
        "aprovals:\n  - Bash(terraform apply*)\n",
        "approval:\n  - Bash(terraform apply*)\n",
        "Approvals:\n  - Bash(terraform apply*)\n",
        "approve:\n  - Bash(terraform apply*)\n",
        "apporvals:\n  - Bash(terraform apply*)\n",
        '"approvals ":\n  - Bash(terraform apply*)\n',
        '" approvals":\n  - Bash(terraform apply*)\n',
        "approv\u0430ls:\n  - Bash(terraform apply*)\n",
        "\u0430\u0440\u0440r\u043ev\u0430ls:\n  - Bash(terraform apply*)\n",
        "\uff41pprovals:\n  - Bash(terraform apply*)\n",
        "settings:\n  approvals:\n    - Bash(terraform apply*)\n",
        "policy:\n  approvals:\n    - Bash(terraform apply*)\n",
        "gates:\n  aprovals:\n    - Bash(terraform apply*)\n",
        "approvals:\n  - Bash(terraform apply*)\napprovals: []\n",
        "approvals:\n  - {call: Bash(terraform apply*), too: [ann]}\n",
        "approvals:\n  - Bash (terraform apply*)\n",
        "approvals:\n  - Bash(terraform apply*\n",
        "approvals:\n  - \u0412ash(terraform apply*)\n",
        "approvals: Bash(terraform apply*)\n",
        "approvals: true\n",
        "- Bash(terraform apply*)\n",
        "a: &x []\napprovals: *x\n",
        "---\nsettings: {}\n---\napprovals: [Bash]\n",
        b"\xff\xfe" + TERRAFORM.encode("utf-16-le"),
        TERRAFORM.encode("utf-16-be"),
        TERRAFORM.encode() + b"# \xe9\n",
        TERRAFORM + "#" * (1 << 20),
        TERRAFORM + "".join(f"a{number}: 1\n" for number in range(1001)),
    ],
)  # fmt: skip
def test_a_file_that_counts_and_cannot_be_read_holds_every_call(shared: Agent, text: str | bytes) -> None:
    """Or one that nearly names the rules. Reading, asking and hearing the answer go on; a person at the terminal is asked."""
    publish(shared, text)
    for said in (
        reply(shared, "ls"),
        shared.before("Write", file_path="x", content=""),
        shared.before("mcp__x__y"),
    ):
        assert said[DECISION] == "deny"
        assert FILE in said[REASON]
    for tool in ("Read", "Grep", "Glob", "LS"):
        assert shared.before(tool, file_path="x", path="x") == {}
    for verb in ("ask 'Which?'", "check 7k2f", "wait 7k2f"):
        assert reply(shared, f"git gate {verb}").get(DECISION) == "allow"
    assert reply(shared, "git gate check 7k2f; rm -rf x")[DECISION] == "deny"
    shared.env["CLAUDE_CODE_ENTRYPOINT"] = "cli"
    assert reply(shared, "ls")[DECISION] == "ask"


@pytest.mark.parametrize("kind", ["link", "folder", "submodule", "absent"])
def test_what_is_no_file_on_the_protected_branch_holds_every_call(
    shared: Agent, cli: Command, kind: str
) -> None:
    """Taken for no rules it would free every call; a link even where its target reads as an empty file. Nor is it no policy."""
    clone = shared.clone
    oid = clone.git("hash-object", "-w", "--stdin", input="{}")
    tree = clone.git("mktree", input=f"100644 blob {oid}\tx\n")
    entry = {
        "link": f"120000 blob {oid}",
        "folder": f"040000 tree {tree}",
        "submodule": f"160000 commit {clone.head()}",
        "absent": f"100644 blob {'12' * 20}",
    }[kind]
    put_tree(clone, f"{entry}\t{FILE}\n")
    assert reply(shared, "ls")[DECISION] == "deny"
    cli.quick("ask", "Which?", cwd=clone.path, code=4)
    assert shared.before("Read", file_path="x") == {}


def test_a_protected_branch_that_is_not_here_holds_every_call(shared: Agent) -> None:
    """It is configured by name: nobody can say which rules stand there."""
    shared.clone.git("config", "gitgate.protectedBranch", "release")
    assert reply(shared, "ls")[DECISION] == "deny"


@pytest.mark.parametrize(
    "text", ["deadlines:\n  - x\n", "flows: {a: 1}\n", "approvals:\n", "# approvals\n", "", "{}\n"]
)
def test_other_fields_hold_nothing(shared: Agent, cli: Command, text: str) -> None:
    """A later git gate may know them, and this one names them."""
    publish(shared, text)
    assert reply(shared, "ls") == {}
    said = cli.quick("policy", "check", "--json", cwd=shared.clone.path, code=0).json
    named = [word for word in ("deadlines", "flows") if text.startswith(word)]
    assert [word in note for word, note in zip(named, said["notes"], strict=True)] == [True] * len(named)


def test_a_rule_that_counts_is_first(shared: Agent, cli: Command) -> None:
    """The working tree's own word on the call changes nothing of it: no other people, no longer deadline, no `allow`."""
    publish(
        shared,
        "approvals:\n  - {call: Bash(terraform apply*), to: [ann@example.org, bob@example.org], quorum: 2}\n",
    )
    shared.clone.write(
        FILE, "approvals:\n  - {call: Bash(*), to: [eve]}\nallow:\n  - Bash(terraform apply*)\n"
    )
    assert reply(shared)[DECISION] == "defer"
    (gate,) = shared.gates()
    shown = cli("show", gate, "--json").json
    assert (shown["to"], shown["needed"]) == (["ann@example.org", "bob@example.org"], 2)


def make_pipe(shared: Agent) -> None:
    os.mkfifo(shared.clone.path / FILE)


def make_folder(shared: Agent) -> None:
    (shared.clone.path / FILE).mkdir()


def make_device(shared: Agent) -> None:
    (shared.clone.path / FILE).symlink_to("/dev/zero")


def make_loop(shared: Agent) -> None:
    (shared.clone.path / FILE).symlink_to(FILE)


def make_large(shared: Agent) -> None:
    shared.clone.write(FILE, "approvals: [Bash(ls)]\n#" + "x" * (1 << 20))


def make_misspelt(shared: Agent) -> None:
    shared.clone.write(FILE, "aprovals: [Bash(ls)]\n")


def make_nonsense(shared: Agent) -> None:
    shared.clone.write(FILE, "approvals: [Bash(ls)\n")


@pytest.mark.parametrize(
    "make", [make_pipe, make_folder, make_device, make_loop, make_large, make_misspelt, make_nonsense]
)
def test_what_an_agent_wrote_and_nobody_can_read_changes_nothing(
    shared: Agent, cli: Command, make: Any
) -> None:
    """The rules that count go on to; that it holds nothing is told."""
    publish(shared, TERRAFORM)
    make(shared)
    assert reply(shared)[DECISION] == "defer"
    other = Agent(shared.clone, "0b9c4f0e-0000-4000-8000-000000000000")
    assert reply(other, "ls") == {}
    said = cli("policy", "try", "ls", cwd=shared.clone.path, code=0)
    assert "cannot be read" in said.err


def test_a_link_is_followed_where_an_agent_works(shared: Agent) -> None:
    """Its rules only hold more."""
    shared.clone.write("rules.yml", TERRAFORM)
    (shared.clone.path / FILE).symlink_to("rules.yml")
    assert reply(shared)[DECISION] == "defer"


def test_one_rule_that_cannot_be_read_leaves_the_others(shared: Agent) -> None:
    """Of a working tree's file: what it names is held."""
    shared.clone.write(
        FILE, "approvals:\n  - Bash(terraform apply*\n  - {cal: x}\n  - 3\n  - Bash(terraform*)\n"
    )
    assert reply(shared)[DECISION] == "defer"


def test_this_machine_s_own_file_counts(shared: Agent, cli: Command, tmp_path: Any) -> None:
    """With all its terms, also beside a branch without rules; one that cannot be read holds every call."""
    file = tmp_path / "machine.yml"
    file.write_text("approvals:\n  - {call: Bash(terraform apply*), to: [ann@example.org]}\n")
    shared.clone.git("config", "gitgate.policyFile", str(file))
    assert reply(shared)[DECISION] == "defer"
    (gate,) = shared.gates()
    assert cli("show", gate, "--json").json["to"] == ["ann@example.org"]
    other = Agent(shared.clone, "0b9c4f0e-0000-4000-8000-000000000000")
    for text in ("aprovals: []\n", None):
        file.unlink() if text is None else file.write_text(text)
        assert reply(other, "ls")[DECISION] == "deny"


def tried(cli: Command, agent: Agent, *words: str, code: int) -> dict[str, Any]:
    return dict(cli.quick("policy", "try", "--json", *words, cwd=agent.clone.path, code=code).json)


def test_a_call_is_tried(shared: Agent, cli: Command) -> None:
    """By the rule that holds it, with where it stands; what does not count yet is listed. No gate is made."""
    publish(shared, TERRAFORM)
    commit = shared.clone.git("rev-parse", "refs/remotes/origin/main")
    shared.clone.write(FILE, TERRAFORM + "  - Write(db/**)\n")
    said = tried(cli, shared, "terraform", "apply", code=8)
    assert (said["schema"], said["waits"], said["rule"]) == ("gitgate.try/v1", True, "Bash(terraform apply*)")
    assert "origin/main:.gitgate.yml" in said["from"]
    assert commit[:10] in said["from"]
    assert (said["pending"], said["line"]) == (["Write(db/**)"], 2)
    said = tried(cli, shared, "--tool", "Write", "--path", "db/1.sql", code=8)
    assert (said["waits"], said["rule"], "working tree" in said["from"]) == (True, "Write(db/**)", True)
    said = tried(cli, shared, "terraform plan", code=0)
    assert (said["waits"], said["rule"], said["from"]) == (False, None, None)
    assert tried(cli, shared, "git gate respond 7k2f --approve", code=4)["waits"] is False
    assert (
        "would wait, by rule"
        in cli.quick("policy", "try", "terraform apply", cwd=shared.clone.path, code=8).out
    )
    assert "would run, because" in cli.quick("policy", "try", "ls", cwd=shared.clone.path, code=0).out
    publish(shared, "aprovals: []\n")
    assert tried(cli, shared, "ls", code=8)["waits"] is True
    assert shared.gates() == []
    cli.quick("policy", "try", cwd=shared.clone.path, code=2)


CALLS = (
    "terraform apply",
    "terraform plan",
    "cd x && terraform apply",
    "ls",
    "git gate ask 'Which?'",
    "npm publish",
)


@pytest.mark.parametrize("where", ["branch", "tree", "both", "broken"])
def test_what_is_tried_is_what_the_hook_does(shared: Agent, cli: Command, where: str) -> None:
    """For each of some calls: exit 8 where it is held, 0 where it is not."""
    publish(shared, {"branch": TERRAFORM, "both": TERRAFORM, "broken": "aprovals: []\n"}.get(where))
    if where in ("tree", "both"):
        shared.clone.write(FILE, "approvals: [bash(npm publish*)]\n")
    for number, command in enumerate(CALLS):
        session = Agent(shared.clone, f"0b9c4f0e-0000-4000-8000-00000000000{number}")
        held = reply(session, command).get(DECISION) in ("defer", "deny")
        tried(cli, shared, command, code=8 if held else 0)


def test_which_rules_count_is_said(shared: Agent, cli: Command) -> None:
    """By `init`, `doctor`, `policy check` and `wrap`: from which commit, and which do not yet."""
    publish(shared, TERRAFORM)
    commit = shared.clone.git("rev-parse", "refs/remotes/origin/main")[:10]
    shared.clone.write(FILE, "approvals:\n  - Bash(npm publish*)\n")
    for words in (("init",), ("doctor",), ("policy", "check"), ("wrap", "--", "true")):
        said = cli(*words, cwd=shared.clone.path)
        told = said.out + said.err
        assert commit in told, words
        assert "Bash(npm publish*) of .gitgate.yml of the working tree does not count yet" in told, words
    (shared.clone.path / FILE).unlink()
    publish(shared, None)
    assert "rule" not in cli("wrap", "--", "true", cwd=shared.clone.path, code=0).err


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["aprovals:\n  - Bash(terraform apply*)\n", TERRAFORM.replace("Bash", "bash")]
)
def test_the_hook_s_own_process_holds_it(shared: Agent, cli: Command, text: str) -> None:
    """As Claude Code starts it, with the event on standard input."""
    publish(shared, text)
    event = shared.event(
        "PreToolUse", tool_name="Bash", tool_use_id=new_call(), tool_input={"command": "terraform apply"}
    )
    said = cli(
        "hook", "claude-pre-tool-use", cwd=shared.clone.path, input=json.dumps(event), env=shared.env, code=0
    )
    assert said.json["hookSpecificOutput"][DECISION] in ("defer", "deny")


ALLOW = """  - allow: Bash("$CC" *)\n"""
COMPILE = '"$CC" -c x.c'


def test_what_the_branch_allows_runs(shared: Agent, cli: Command) -> None:
    """As it is written, each command of the line for itself; and it is said that it does, and by what."""
    publish(shared, TERRAFORM)
    assert "Write it plainly" in reply(shared, COMPILE)[REASON]
    publish(shared, TERRAFORM + ALLOW)
    assert reply(shared, COMPILE) == {}
    assert reply(shared, f"{COMPILE} && {COMPILE} | tail") == {}
    for line in (
        f'{COMPILE}; "$LD" x.o',
        f'"$LD" {COMPILE!r}',
        f"trap {COMPILE!r} EXIT",
        'CC=$(cat f); "$CC" -c x.c',
    ):
        assert "Write it plainly" in reply(shared, line)[REASON], line
        assert tried(cli, shared, line, code=4)["allowed_by"] == []
    said = tried(cli, shared, COMPILE, code=0)
    assert (said["waits"], said["rule"], said["allowed_by"]) == (False, None, ['Bash("$CC" *)'])
    out = cli.quick("policy", "try", COMPILE, cwd=shared.clone.path, code=0).out
    assert 'would run, because `Bash("$CC" *)` allows it' in out
    assert tried(cli, shared, "ls", code=0)["allowed_by"] == []
    assert shared.gates() == []
    assert reply(shared, f"{COMPILE}; terraform apply")[DECISION] == "defer"


def test_what_is_allowed_never_beats_a_rule(shared: Agent) -> None:
    """Of the branch, or of a working tree; a line that could be what the rule names waits as well."""
    publish(shared, "approvals:\n  - allow: [Bash($X *), 'Bash(\"$CC\" *)']\n  - Bash(terraform *)\n")
    for number, line in enumerate(
        ("X=terraform; $X apply", "$X apply", "$X plan # terraform", f"{COMPILE}; terraform plan")
    ):
        session = Agent(shared.clone, f"0b9c4f0e-0000-4000-8000-00000000000{number}")
        assert reply(session, line)[DECISION] == "defer", line
    publish(shared, "approvals:\n" + ALLOW)
    shared.clone.write(FILE, "approvals:\n  - Bash(npm publish*)\n")
    other = Agent(shared.clone, "0b9c4f0e-0000-4000-8000-00000000000a")
    assert reply(other, COMPILE) == {}
    assert reply(other, f"{COMPILE}; npm publish")[DECISION] == "defer"


@pytest.mark.parametrize("where", ["tree", "tree beside rules", "commit", "other words"])
def test_what_an_agent_allows_itself_does_not_count(shared: Agent, cli: Command, where: str) -> None:
    """In its working tree, in a commit that nobody pushed, or beside what the branch allows; and that is said."""
    publish(shared, TERRAFORM + ('  - allow: Bash("$LD" *)\n' if where == "other words" else ""))
    text = {"tree": "approvals:\n" + ALLOW}.get(where, TERRAFORM + ALLOW)
    if where == "commit":
        shared.clone.commit("rules", **{FILE: text})
        (shared.clone.path / FILE).unlink()
    else:
        shared.clone.write(FILE, text)
    assert "Write it plainly" in reply(shared, COMPILE)[REASON]
    assert reply(shared, "terraform apply")[DECISION] == "defer"
    for words in (
        ("init",),
        ("doctor",),
        ("policy", "check"),
        ("policy", "try", "ls"),
        ("wrap", "--", "true"),
    ):
        said = cli(*words, cwd=shared.clone.path)
        told = said.out + said.err
        assert 'Bash("$CC" *) of ' in told, words
        assert "does not count. An agent can write that file" in told, words
    shape = cli.quick("policy", "check", "--json", cwd=shared.clone.path, code=0).json
    assert [one["counts"] for one in shape["allowed"] if "CC" in one["allow"]] == [False]
    assert shape["pending"] == []


def test_what_is_allowed_is_said(shared: Agent, cli: Command) -> None:
    """By `init`, `doctor`, `policy check` and `wrap`, with the commit; the same words in the working tree add nothing."""
    publish(shared, TERRAFORM + ALLOW)
    commit = shared.clone.git("rev-parse", "refs/remotes/origin/main")
    shared.clone.write(FILE, TERRAFORM + "  - Bash(npm publish*)\n" + ALLOW)
    for words in (("init",), ("doctor",), ("policy", "check"), ("wrap", "--", "true")):
        said = cli(*words, cwd=shared.clone.path)
        told = said.out + said.err
        assert f'Bash("$CC" *) of origin/main:{FILE} ({commit[:10]}) allows a command' in told.replace(
            "remotes/", ""
        ), words
        assert "An agent can write that file" not in told, words
    shape = cli.quick("policy", "check", "--json", cwd=shared.clone.path, code=0).json
    (one,) = shape["allowed"]
    assert (one["allow"], one["commit"], one["line"], one["counts"]) == ('Bash("$CC" *)', commit, 3, True)
    assert [rule["call"] for rule in shape["approvals"]] == ["Bash(terraform apply*)"]


@pytest.mark.parametrize(
    "entry", ["allow: Bash(*)", "allow: Bash", "{allow: Bash($X *), to: [ann]}", "alow: Bash($X *)"]
)
def test_what_is_allowed_and_cannot_be_read_holds_every_call(shared: Agent, cli: Command, entry: str) -> None:
    """On the protected branch. In a working tree it is told, and changes nothing."""
    publish(shared, f"{TERRAFORM}  - {entry}\n")
    assert reply(shared, "ls")[DECISION] == "deny"
    publish(shared, TERRAFORM)
    shared.clone.write(FILE, f"{TERRAFORM}  - {entry}\n")
    assert reply(shared, "ls") == {}
    assert "cannot be read" in cli("policy", "try", "ls", cwd=shared.clone.path, code=0).err


def test_this_machine_s_own_file_allows(shared: Agent, tmp_path: Any) -> None:
    """What the protected branch's rules would deny; the rules of both hold."""
    publish(shared, TERRAFORM)
    file = tmp_path / "machine.yml"
    file.write_text("approvals:\n" + ALLOW)
    shared.clone.git("config", "gitgate.policyFile", str(file))
    assert reply(shared, COMPILE) == {}
    assert reply(shared, f"{COMPILE}; terraform apply")[DECISION] == "defer"


def test_a_person_at_a_terminal_is_not_asked_about_what_is_allowed(shared: Agent) -> None:
    """As without it they are."""
    publish(shared, TERRAFORM)
    shared.env["CLAUDE_CODE_ENTRYPOINT"] = "cli"
    assert reply(shared, COMPILE)[DECISION] == "ask"
    publish(shared, TERRAFORM + ALLOW)
    assert reply(shared, COMPILE) == {}


@pytest.mark.slow
def test_the_hook_s_own_process_lets_it_run(shared: Agent, cli: Command) -> None:
    """As Claude Code starts it: nothing is said of what is allowed, and what is not is denied."""
    publish(shared, TERRAFORM + ALLOW)
    for line, wanted in ((COMPILE, None), (f'{COMPILE}; "$LD" x.o', "deny")):
        event = shared.event(
            "PreToolUse", tool_name="Bash", tool_use_id=new_call(), tool_input={"command": line}
        )
        said = cli(
            "hook",
            "claude-pre-tool-use",
            cwd=shared.clone.path,
            input=json.dumps(event),
            env=shared.env,
            code=0,
        )
        output = json.loads(said.out)["hookSpecificOutput"] if said.out.strip() else {}
        assert output.get(DECISION) == wanted
