"""Commits and trees: one form is read, the one that git writes, and it is written again as it was."""

from __future__ import annotations

import pytest

from gitgate.errors import BrokenRecord
from gitgate.store.git.canonical import (
    FOLDER,
    REGULAR,
    NotCanonical,
    TreeEntry,
    dump_commit,
    dump_tree,
    parse_commit,
    parse_history,
    parse_new_commit,
    parse_tree,
)
from gitgate.store.records import Records
from support.forging import EMPTY_TREE, Bench
from support.misreading import EVERY, HIDDEN, UNSOUND
from support.testbed.repositories import Clone

PARENTS = ("1" * 40, "2" * 40)
HONEST = dump_commit("ab" * 20, PARENTS, "Ada <ada@example.org>", 5, "words\n")
OF_PEOPLE = (
    "an unknown header",
    "a merged tag",
    "two encodings",
    "no address",
    "an address within another",
    "no date",
)


@pytest.mark.parametrize("how", sorted(set(EVERY) - {"parents in the message"}))
def test_no_other_form_of_a_commit_is_read(how: str) -> None:
    """Whatever git would make of it."""
    with pytest.raises(NotCanonical):
        parse_new_commit(EVERY[how](HONEST))
    if how != "no address":
        with pytest.raises(NotCanonical):
            parse_commit(EVERY[how](HONEST))


def test_what_earlier_versions_wrote_is_read() -> None:
    """A waiter's lease had the agent's name for its author, and an answer from a team's pages a login."""
    payload = HONEST.replace(b"Ada <ada@example.org>", b"scripted")
    found = parse_commit(payload)
    assert (found.parents, found.has_addresses, found.committed_at) == (PARENTS, False, 5)


def test_what_stands_in_the_message_is_no_parent() -> None:
    """As git has it: such a commit is a root."""
    assert parse_commit(HIDDEN["parents in the message"](HONEST)).parents == ()


@pytest.mark.parametrize("how", sorted(set(HIDDEN) - {"parents in the message"}))
def test_the_order_of_headers_counts_in_peoples_history_too(how: str) -> None:
    """A base whose parents stand elsewhere has another history than git keeps."""
    with pytest.raises(NotCanonical):
        parse_history(HIDDEN[how](HONEST))


@pytest.mark.parametrize("how", OF_PEOPLE)
def test_what_else_people_have_is_theirs(how: str) -> None:
    """Headers that git gate does not know, and names that git would complain of; all of it is kept."""
    payload = UNSOUND[how](HONEST)
    found = parse_history(payload)
    assert (found.tree, found.parents) == ("ab" * 20, PARENTS)
    assert found.dump() == payload


@pytest.mark.parametrize(
    "extra",
    [
        b"encoding ISO-8859-1\n",
        b"gpgsig -----BEGIN SSH SIGNATURE-----\n abc\n -----END SSH SIGNATURE-----\n",
        b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----\n \n",
        b"encoding UTF-8\ngpgsig a\n b\ngpgsig-sha256 c\n d\n",
    ],
)
def test_what_git_adds_is_read(extra: bytes) -> None:
    """A signature with its empty lines, an encoding; and written again it is the same."""
    payload = HONEST.replace(b"\n\nwords", b"\n" + extra + b"\nwords")
    found = parse_commit(payload)
    assert (found.parents, found.message, found.dump()) == (PARENTS, "words\n", payload)
    assert found.signed == (b"gpgsig" in extra)


def test_a_message_of_its_own_kind() -> None:
    """Empty, without an end, with what looks like headers."""
    for message in (b"", b"x", b"\n", b"tree x\n\nparent y\n"):
        payload = HONEST[: HONEST.index(b"words")] + message
        assert parse_commit(payload).dump() == payload
        assert parse_commit(payload).body == message


def test_a_commit_that_ends_with_its_headers() -> None:
    """Git takes it of people; git gate writes none."""
    payload = HONEST[: HONEST.index(b"\nwords")]
    assert parse_history(payload).dump() == payload
    for part in (payload, payload[:-1], b"", b"\n", b"\n\n"):
        with pytest.raises(NotCanonical):
            parse_commit(part)


@pytest.mark.parametrize(
    ("who", "written"),
    [
        ("scripted", b"scripted <nobody@gitgate.invalid>"),
        ("", b" <nobody@gitgate.invalid>"),
        ("Ada <>", b"Ada <nobody@gitgate.invalid>"),
        ("Ada\n <a@b>", b"Ada <a@b>"),
        ("A\0 <a@b>", b"A <a@b>"),
        ("Ada <a>b> <c", b"Ada <ab c>"),
        ("Ada <a@b>", b"Ada <a@b>"),
    ],
)
def test_whoever_it_is_git_takes_it(repo: Clone, who: str, written: bytes) -> None:
    """A name without an address, or with what ends it, is no reason to fail."""
    payload = dump_commit(EMPTY_TREE, (), who, -5, "x")
    assert parse_new_commit(payload).author == written + b" 0 +0000"
    repo.git("hash-object", "-t", "commit", "--stdin", input=payload)


@pytest.mark.parametrize("name", ["Áda \udcff", "", "A, B; C.", "A\tB", "Ada (x)", "\u202eAda", "a" * 5000])
def test_odd_names_are_written_as_git_takes_them(repo: Clone, name: str) -> None:
    """Git itself finds nothing wrong with them."""
    payload = dump_commit(EMPTY_TREE, (), f"{name} <a@b>", 2**37, "x \udcff\0\n")
    assert parse_commit(payload).dump() == payload
    repo.git("mktree", input=b"")
    repo.git("hash-object", "-t", "commit", "--stdin", input=payload)


def entry(name: bytes, mode: str = REGULAR, number: int = 1) -> TreeEntry:
    return TreeEntry(mode, name, f"{number:040x}")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([entry(b"b"), entry(b"a")], "out of order"),
        ([entry(b"a", FOLDER), entry(b"a.b")], "out of order"),
        ([entry(b"a"), entry(b"a")], "one name twice"),
        ([entry(b"a"), entry(b"a.b"), entry(b"a", FOLDER)], "one name twice"),
        ([entry(b"")], "empty"),
        ([entry(b"a", "100664")], "does not write"),
        ([entry(b"a", "0100644")], "does not write"),
        ([entry(b"a", "040000")], "does not write"),
        ([entry(b"a/b")], "no file may have"),
        ([entry(b".")], "no file may have"),
        ([entry(b"..")], "no file may have"),
        ([entry(b".GIT", FOLDER)], "no file may have"),
        ([entry(b"git~1", FOLDER)], "no file may have"),
        ([entry(".g\u200cit".encode(), FOLDER)], "no file may have"),
        ([entry(b"x\\.git ", FOLDER)], "no file may have"),
        ([entry(b".git::$INDEX_ALLOCATION", FOLDER)], "no file may have"),
        ([entry(b"a", number=0)], "without an object"),
    ],
)
def test_no_other_form_of_a_tree_is_read(entries: list[TreeEntry], words: str) -> None:
    """Git calls each an error, or reads it as it likes."""
    raw = b"".join(dump_tree([one]) for one in entries)
    with pytest.raises(NotCanonical, match=words):
        parse_tree(raw)


def test_a_record_in_another_form_is_broken() -> None:
    """In a clone as on a server, with the commit that it is."""
    bench = Bench()
    records: Records = bench.records
    tip = bench.with_file(bench.gate.tip, "answers/x.yaml", b"x")
    payload = records.objects.read(tip)[1]
    forged = records.objects.write("commit", HIDDEN["parents behind the committer"](payload))
    with pytest.raises(BrokenRecord, match=f"commit {forged[:12]} has 'parent {bench.gate.tip}' behind"):
        records.load(bench.gate.id, forged)
