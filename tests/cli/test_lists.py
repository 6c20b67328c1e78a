"""The command line's lists: what waits, filtered, at every width, and in a clone that knows nothing yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.cli.verbs import lists
from gitgate.gates.leases import LOOKED_THROUGH
from gitgate.text import width
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Ask = Callable[..., str]
NO_INIT = "until it is set up: git gate init"


def ids(cli: Command, *args: str, cwd: Path | None = None) -> list[str]:
    return [gate["id"] for gate in cli.quick("list", *args, "--json", cwd=cwd, code=0).json["gates"]]


def test_the_most_pressing_comes_first(cli: Command, ask: Ask) -> None:
    """By priority; the line has id, age, priority, asker, branch and question."""
    low = ask("Later?", "--priority", "low", "--agent", "tidy/1")
    urgent = ask("Now?", "--priority", "urgent", "--agent", "deployer/7k2f", "--timeout", "2h")
    assert ids(cli) == [urgent, low]
    head, first, second = cli.quick("list", code=0).out.splitlines()
    assert head.split() == ["ID", "AGE", "PRIO", "ASKED", "BY", "BRANCH", "QUESTION"]
    assert first.split()[0::2][:2] == [urgent, "urgent"]
    assert first.endswith("deployer/7k2f  main    Now? · due in 2h")
    assert second.startswith(low)


def test_filters(cli: Command, repo: Clone, ask: Ask) -> None:
    """Each narrows the list; other systems' words for a type are understood."""
    approval = ask("Deploy?", "--type", "approval", "--agent", "bob/1")
    repo.git("checkout", "-q", "-b", "side")
    choice = ask("Which?", "-o", "A", "-o", "B", "--to", "@grace", "--agent", "eve/2")
    cli.quick("respond", approval, "--approve", "-q", code=0)
    done = ask("Old?")
    cli.quick("withdraw", done, "--reason", "found it", "-q", code=0)
    assert ids(cli) == [choice]
    assert ids(cli, "--state", "answered") == [approval]
    assert set(ids(cli, "--all")) == {approval, choice, done}
    assert ids(cli, "--all", "--type", "confirmation") == [approval]
    assert ids(cli, "--all", "--state", "withdrawn") == [done]
    assert ids(cli, "--branch", "side") == [choice]
    assert ids(cli, "--branch", "main") == []
    assert ids(cli, "--asked-by", "EVE") == [choice]
    assert ids(cli, "--mine") == []
    assert ids(cli, "--pr", "7") == []
    assert "no gate fits" in cli.quick("list", "--mine", code=0).err


def test_a_pull_request(cli: Command, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that was asked in a pull request's job is found by its number."""
    monkeypatch.setenv("GITHUB_REF", "refs/pull/12/merge")
    gate = ask("Which?")
    assert (ids(cli, "--pr", "12"), ids(cli, "--pr", "13")) == ([gate], [])


def test_verbose_has_title_context_and_options(cli: Command, ask: Ask) -> None:
    """Below the line of each gate."""
    ask("Which?", "-o", "JWT", "-o", "Sessions", "--title", "Auth for phones", "--context", "Two\nlines.")
    said = cli.quick("list", "-v", code=0).out
    assert "    title: Auth for phones\n    Two\n    lines.\n    options: JWT, Sessions" in said


def test_archived_gates_are_in_the_list_of_all(cli: Command, repo: Clone, ask: Ask) -> None:
    """Folded away they are last, and known as archived."""
    from gitgate.config import environment
    from gitgate.context import open_desk
    from gitgate.sharing.archiving import fold_closed

    gate, waits = ask("Old?"), ask("New?")
    cli.quick("withdraw", gate, "--reason", "x", "-q", code=0)
    desk = open_desk(repo.path, environment())
    assert fold_closed(desk).folded == (gate,)
    desk.close()
    assert ids(cli) == [waits]
    listed = cli.quick("list", "--all", "--json").json["gates"]
    assert [(one["id"], one["archived"]) for one in listed] == [(waits, False), (gate, True)]
    assert gate in cli.quick("list", "--all").out
    assert "archived" in cli.quick("show", gate, code=0).out


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_lines_fit_the_terminal(pty_cli: Callable[..., Terminal], ask: Ask, columns: int) -> None:
    """Whatever the question says, wide characters included; the columns stand below one another."""
    ask("Welche Datenbank? " * 20, "--agent", "a-long-name-of-an-agent/7k2f", "--priority", "high")
    ask("データベースはどれにしますか " * 9, "--agent", "日本語のエージェント/1")
    shown = pty_cli("list", "-q", columns=columns, rows=30).finish(code=0).splitlines()
    assert len(shown) == 3
    assert max(width(line) for line in shown) <= columns
    starts = [width(line[: max(line.find("Welche"), line.find("デー"))]) for line in shown[1:]]
    assert starts == [shown[0].index("QUESTION")] * 2
    assert [("main" in line) for line in shown[1:]] == [columns > 60] * 2


def test_a_pipe_is_not_cut(cli: Command, ask: Ask) -> None:
    """Where nobody looks at a terminal, grep finds the end of the question."""
    ask("x" * 150 + " needle")
    assert "needle" in cli.quick("list", code=0).out


def test_without_a_verb(cli: Command, ask: Ask) -> None:
    """The state in a line, the waiting list, and what to type next."""
    gate, other = ask("Now?", "--priority", "urgent"), ask("Later?")
    cli.quick("respond", ask("Done?", "--session", "abcd-1234"), "yes", "-q", code=0)
    said = cli.quick(code=0).out
    assert said.splitlines()[0] == "2 wait for you · 1 answered"
    assert said.splitlines()[-1] == f"next: git gate show {gate[:6]}"
    assert other in said
    shape = cli.quick("--json", code=0).json
    assert (shape["counts"], [one["id"] for one in shape["gates"]]) == (
        {"awaiting": 2, "answered": 1},
        [gate, other],
    )


def test_what_waits_for_others(cli: Command, ask: Ask) -> None:
    """Answered by the person here, and not yet by as many as it takes: told so, after what waits for them."""
    voted, waits = ask("Deploy?", "--type", "approval", "--quorum", "3", "--priority", "urgent"), ask("Now?")
    cli.quick("respond", voted, "yes", code=0)
    cli.quick("comment", voted, "who else?", code=0)
    said = cli.quick(code=0).out.splitlines()
    assert said[0] == "1 waits for you · 1 waits for others"
    assert [line.split()[0] for line in said[3:5]] == [waits, voted]
    assert said[4].endswith("Deploy? · you answered; 2 more needed")
    assert said[-1] == f"next: git gate show {waits[:6]}"
    assert cli.quick("list", code=0).out.splitlines()[-1] == said[4]
    other = {"GIT_AUTHOR_NAME": "Bob", "GIT_AUTHOR_EMAIL": "bob@example.org"}
    assert cli.quick(code=0, env=other).out.splitlines()[0] == "2 wait for you"


def test_init_is_mentioned_once(cli: Command, repo: Clone, ask: Ask) -> None:
    """In a clone without it, on stderr, whichever verb comes first; never where it was run."""
    said = [
        cli.quick(*words).err
        for words in (["ask", "One?"], ["list"], [], ["ask", "Two?"], ["list", "--json"])
    ]
    assert [NO_INIT in words for words in said] == [True, False, False, False, False]


def test_init_is_not_mentioned_where_nobody_asked(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone]
) -> None:
    """In a clone where a person only answers, no verb tells them to set up what a server or the asker's machine does."""
    ann, bob = clone_of(bare, "ann"), clone_of(bare, "bob")
    gate = cli.quick("ask", "One?", "-q", cwd=ann.path, code=0).line
    verbs: tuple[list[str], ...] = (
        ["sync"],
        ["list"],
        [],
        ["show", gate],
        ["respond", gate, "yes"],
        ["list", "--all"],
    )
    said = [cli.quick(*words, cwd=bob.path).err for words in verbs]
    assert [words for words in said if NO_INIT in words] == []
    assert NO_INIT in cli.quick("list", "--all", cwd=ann.path).err


def test_init_is_not_mentioned_after_it(cli: Command, repo: Clone) -> None:
    """The setting is what `git gate init` leaves."""
    repo.git("config", "gitgate.initialised", "true")
    assert cli.quick("ask", "One?").err.count("git gate init") == 0


def test_a_clone_that_never_synced_says_so(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone], ask: Ask
) -> None:
    """Instead of `nothing waits`, in every verb that looks for a gate; after a sync it knows."""
    here, there = clone_of(bare, "here"), clone_of(bare, "there")
    gate = ask("Which?", cwd=here.path)
    for words in (
        [],
        ["list"],
        ["list", "--json"],
        ["respond", "-m", "x"],
        ["diff", gate[:4]],
    ):
        said = cli.quick(*words, cwd=there.path)
        assert "never synced with origin" in said.out + said.err, words
        assert "git gate sync" in said.out + said.err, words
    assert cli.quick("diff", gate, cwd=there.path).code == 1
    cli.quick("sync", cwd=there.path, code=0)
    assert ids(cli, cwd=there.path) == [gate]


def test_an_empty_list_after_a_sync_is_empty(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone]
) -> None:
    """The remote has none: that is known now."""
    clone = clone_of(bare)
    cli.quick("sync", cwd=clone.path, code=0)
    assert cli.quick("list", cwd=clone.path, code=0).err.startswith("nothing waits for you")


def test_a_sync_that_carried_many_looks_through_none_of_them(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one does."""
    monkeypatch.setattr(lists, "FEW", 2)
    ann = clone_of(bare, "ann")
    for _ in range(3):
        cli.quick("ask", "Which?", "--no-push", cwd=ann.path, code=0)
    mark = ann.path / ".git" / "gitgate" / LOOKED_THROUGH
    cli.quick("sync", cwd=ann.path, code=0)
    assert len(bare.refs("refs/hitl/open")) == 3
    assert not mark.exists()
    cli.quick("sync", cwd=ann.path, code=0)
    assert mark.exists()


def test_list_may_sync_first(cli: Command, bare: Clone, clone_of: Callable[..., Clone], ask: Ask) -> None:
    """`--sync` fetches what others asked."""
    here, there = clone_of(bare, "here"), clone_of(bare, "there")
    gate = ask("Which?", cwd=here.path)
    assert ids(cli, "--sync", cwd=there.path) == [gate]


def test_a_hostile_gate_is_harmless_in_a_list(cli: Command, ask: Ask) -> None:
    """Escapes, bidi and newlines in question, agent and title are spelt out in text and exact in JSON."""
    hostile = "a\x1b[31m\u202e\nb"
    ask(hostile, "--agent", "x\x1b]0;t\x07", "--title", "t\x9b")
    for words in (["list"], ["list", "-v"], [], ["tree"], ["log"], ["status"]):
        said = cli.quick(*words, "--color", "never", code=0).out
        assert not any(sign in said for sign in ("\x1b", "\x07", "\x9b", "\u202e")), words
    (gate,) = cli.quick("list", "--json").json["gates"]
    assert gate["questions"][0]["prompt"] == hostile


def test_ids_by_their_beginning(cli: Command, ask: Ask, repo: Clone) -> None:
    """Four characters or more, in any case; unknown and ambiguous ones exit 1 and say what is there."""
    gate = ask("Which?")
    assert cli.quick("show", gate[:4].upper(), "--json", code=0).json["id"] == gate
    twin = gate[:4] + ("zzzzzz" if gate[4:] != "zzzzzz" else "yyyyyy")
    repo.git("update-ref", f"refs/hitl/open/{twin}", f"refs/hitl/open/{gate}")
    ambiguous = cli.quick("show", gate[:4], code=1).err
    assert gate in ambiguous
    assert twin in ambiguous
    for wrong in ("zzzz", "abc", "not an id", "-1", "../x", "zzzzzzzzzz"):
        assert cli.quick("check", "--json", "--", wrong, code=1).json["error"]["code"] == "unknown_gate"


def test_everywhere(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone], ask: Ask, tmp_path: Path
) -> None:
    """One list a repository that `init` knows; one that is broken is named, and the others go on."""
    from gitgate.config import environment
    from gitgate.context.machine import register

    assert "no repository is known" in cli.quick("list", "--everywhere", cwd=tmp_path, code=0).err
    first, second = clone_of(bare, "first"), clone_of(bare, "second")
    (tmp_path / "broken").mkdir()
    for place in (first.path, second.path, tmp_path / "broken"):
        register(environment(), place)
    gates = {str(clone.path): ask("Which?", "--no-push", cwd=clone.path) for clone in (first, second)}
    said = cli.quick("list", "--everywhere", cwd=tmp_path, code=0)
    assert all(f"{place}\nID " in said.out for place in gates)
    assert all(gate in said.out for gate in gates.values())
    assert f"{tmp_path / 'broken'} is not in a git repository" in said.err
    shape = cli.quick("list", "--everywhere", "--json", cwd=tmp_path, code=0).json
    assert {gate["repository"]: gate["id"] for gate in shape["gates"]} == gates


def test_a_forged_gate_is_harmless(cli: Command, repo: Clone, ask: Ask) -> None:
    """Whoever can push can write any ref and any trailer: what is shown of them is neutral, and nothing fails."""
    honest = ask("Which?")
    hostile = "x\u202e\x9b31m"
    tree = repo.git("hash-object", "-t", "tree", "-w", "--stdin")
    for gate, state in (("zz\u202ezz", "awaiting"), ("abcdefghij", hostile), ("bcdefghijk", "awaiting")):
        lines = [
            f"Gate: {gate}",
            f"State: {state}",
            f"Priority: {hostile}",
            f"Asked-At: {hostile}",
            f"Deadline: 2{hostile}",
        ]
        lines += [f"Questions: {'9' * 60}", f"Branch: {hostile}", f"Agent: {hostile}", f"Title: {hostile}"]
        message = "forged\n\n" + "\n".join(f"Hitl-{line}" for line in lines)
        repo.git("update-ref", f"refs/hitl/open/{gate}", repo.git("commit-tree", tree, input=message))
    for words in (
        ["list"],
        ["list", "-v"],
        ["list", "--all"],
        [],
        ["tree"],
        ["tree", "--all"],
        ["log"],
        ["status"],
    ):
        said = cli.quick(*words, code=0)
        assert honest[:6] in said.out or words == ["status"]
        assert not any(sign in said.out + said.err for sign in ("\x9b", "\u202e")), words
    assert [gate["id"] for gate in cli.quick("list", "--json", code=0).json["gates"]] == [honest]
    assert cli.quick("show", "abcdefghij", code=1).err
    assert cli.quick("respond", "bcdefghijk", "words", code=1).err
    assert not any(sign in cli.quick("show", "zz\u202ezz", code=1).err for sign in ("\x9b", "\u202e"))


def test_a_gate_that_follows_another_stands_below_it(cli: Command, repo: Clone, ask: Ask) -> None:
    """Also where the one before is over; on another branch it stands by itself."""
    first = ask("First?", "--title", "The first")
    cli.quick("respond", first, "yes", code=0)

    def after(before: str, *words: str) -> str:
        return cli.quick("ask", *words, "-q", env={"GITGATE_GATE": before}, code=0).line

    second = after(first, "Second?")
    third = after(second, "Third?")
    other = ask("Other?", "--priority", "low")
    repo.git("checkout", "-q", "-b", "side")
    aside = after(first, "Aside?")
    assert cli.quick("tree", code=0).out.splitlines() == [
        "main",
        f"├─ {first[:6]} [answered] The first",
        "│    Question: First?",
        f"│  └─ {second[:6]} [awaiting] Second?",
        f"│     └─ {third[:6]} [awaiting] Third?",
        f"└─ {other[:6]} [awaiting] Other?",
        "side",
        f"└─ {aside[:6]} [awaiting] Aside?",
    ]
    shapes = cli.quick("tree", "--json", code=0).json["branches"]["main"]
    assert {one["id"]: one["follows"] for one in shapes} == {
        first: None,
        second: first,
        third: second,
        other: None,
    }


@pytest.mark.parametrize("odd", ["a\u2028b", "a\u0085b", "\u00e9", "x/y", "7k2fw9c3aB"])
@pytest.mark.parametrize(
    "folder", ["hitl/open", "hitl/work", "hitl/archive", "hitl/leases", "gitgate/origin/open"]
)
@pytest.mark.slow
def test_a_ref_of_any_name_stops_nobody(cli: Command, repo: Clone, ask: Ask, folder: str, odd: str) -> None:
    """Whoever pushes makes names up; what is none of ours is left alone or named as broken, and the gates are there."""
    gate = ask("Which?")
    over = ask("Over?")
    cli.quick("respond", over, "yes", code=0)
    repo.git("update-ref", f"refs/{folder}/{odd}", "HEAD")
    for words in (["list"], ["list", "--json"], ["status"], ["tree"], ["log"], ["doctor"], ["archive"], []):
        cli.quick(*words, code=0)
    assert gate in cli.quick("list", code=0).out
    assert over in cli.quick("list", "--all", code=0).out
    belongs_nowhere = folder in ("hitl/open", "hitl/work", "hitl/leases")
    assert cli.quick("verify").code == (1 if belongs_nowhere else 0)
