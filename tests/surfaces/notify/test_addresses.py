"""Who is told, and how: which line counts, where it stands, and what is said of one that does not."""

from __future__ import annotations

import pytest

from gitgate.config import load_settings
from gitgate.context import Desk
from gitgate.setup.checkup import GOOD, WRONG
from gitgate.surfaces.notify.addresses import AddressBook, load_addresses
from gitgate.surfaces.notify.outbox import examine_addresses
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TEAM = """notify:
  - address: webhook https://example.org/token
    name: team
    only: high
    to: [ada@example.org, bob]
"""


def add(clone: Clone, *lines: str) -> None:
    for line in lines:
        clone.git("config", "--add", "gitgate.notify", line)


def book_of(seat: Seat) -> AddressBook:
    return load_addresses(seat.desk)


def test_each_line_of_the_machine_is_an_address(alone: Seat) -> None:
    """By its own name, or by its kind; a chat by its service."""
    add(
        alone.clone,
        "desktop",
        "bell=command true 'a b'",
        "slack://a/b/c",
        "mine=mailto://u:p@example.org?to=x",
    )
    book = book_of(alone)
    assert [(one.name, one.channel.kind) for one in book.recipients] == [
        ("desktop", "desktop"),
        ("bell", "command"),
        ("slack", "apprise"),
        ("mine", "apprise"),
    ]
    assert book.recipients[3].target.words == "mailto://u:p@example.org?to=x"
    assert book.unusable == ()


def test_what_is_set_for_a_name_counts_before_what_is_set_for_all(alone: Seat) -> None:
    add(alone.clone, "desktop", "team=webhook https://example.org/x")
    for key, value in {
        "only": "high",
        "team.only": "urgent",
        "team.to": "Ada <ada@example.org>, @bob",
        "team.secret": SECRET,
        "quiet": "22:00-07:00",
        "url": "https://example.org/{id}",
    }.items():
        alone.clone.git("config", f"gitgate.notify.{key}", value)
    desktop, team = book_of(alone).recipients
    assert (desktop.only, desktop.quiet, desktop.to) == ("high", "22:00-07:00", ())
    assert (team.only, team.to) == ("urgent", ("Ada <ada@example.org>", "@bob"))
    assert (team.target.secret, team.url) == (SECRET, "https://example.org/{id}")


def test_an_address_is_told_once_whoever_names_it(alone: Seat) -> None:
    add(alone.clone, "desktop", "again=desktop")
    assert [one.name for one in book_of(alone).recipients] == ["desktop"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("destkop", "did you mean desktop?"),
        ("desktop loud", "desktop, and nothing behind it"),
        ("webhook http://example.org/token", "expected an address that begins with https://"),
        ("command 'open", "with its quotes closed"),
        ("", "expected desktop, command"),
    ],
)
def test_a_wrong_line_is_named_and_stops_no_other(alone: Seat, line: str, words: str) -> None:
    """With what was expected, and no more of it than its beginning: it may hold a token."""
    add(alone.clone, line, "desktop")
    book = book_of(alone)
    assert [one.name for one in book.recipients] == ["desktop"]
    (wrong,) = book.unusable
    assert words in wrong.words
    assert "example.org/token" not in wrong.words


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("only", "very"),
        ("quiet", "at night"),
        ("quiet", "25:00-07:00"),
        ("desktop.quiet", "always"),
        ("shared", "perhaps"),
    ],
)
def test_a_wrong_option_leaves_its_address_out(alone: Seat, key: str, value: str) -> None:
    """It might tell too much, or at the wrong time; the option is named with what was expected."""
    add(alone.clone, "desktop")
    alone.clone.git("config", f"gitgate.notify.{key}", value)
    book = book_of(alone)
    assert book.recipients == ()
    assert f"gitgate.notify.{key} is" in book.unusable[0].words


def test_a_misspelt_setting_is_named() -> None:
    """As of all settings; also below the name of an address."""
    git = {
        "gitgate.notify": "desktop",
        "gitgate.notify.team.only": "high",
        "gitgate.notify.quiet": "22:00-07:00",
    }
    assert load_settings({}, git, None).misspelt == {}
    wrong = load_settings(
        {}, {"gitgate.notify.team.onyl": "high", "gitgate.notify.quite": "x", "gitgate.notfy": "x"}, None
    )
    assert wrong.misspelt == {
        "gitgate.notify.team.onyl": "there is no setting gitgate.notify.team.onyl (did you mean only?)",
        "gitgate.notify.quite": "there is no setting gitgate.notify.quite (did you mean quiet?)",
        "gitgate.notfy": "there is no setting gitgate.notfy (did you mean notify?)",
    }


def test_neither_the_working_tree_nor_the_environment_says_who_is_told(
    alone: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent writes in both: not in `.gitgate.yml`, not by a file that git's configuration includes from there."""
    alone.clone.write(".gitgate.yml", TEAM + "settings:\n  notify: desktop\n")
    alone.clone.write("mine", "[gitgate]\n\tnotify = desktop\n")
    alone.clone.git("config", "include.path", "../mine")
    alone.clone.git("config", "gitgate.notify.shared", "true")
    monkeypatch.setenv("GITGATE_NOTIFY", "desktop")
    book = book_of(alone)
    assert (book.recipients, book.elsewhere, book.unusable) == ((), (), ())


def protected(server: Clone, clone: Clone, text: str) -> None:
    clone.commit("rules", **{".gitgate.yml": text})
    clone.git("push", "-q", "origin", "main")


def test_the_branchs_addresses_are_told_by_the_server_alone(bare: Clone, ann: Seat) -> None:
    """Every clone knows them, and says who tells them; one that is told to tells them, too."""
    protected(bare, ann.clone, TEAM)
    ann.clone.git("config", "gitgate.notify.team.secret", SECRET)
    here = book_of(ann)
    assert here.recipients == ()
    (team,) = here.elsewhere
    assert (team.name, team.only, team.to, team.target.own) == (
        "team",
        "high",
        ("ada@example.org", "bob"),
        False,
    )
    assert team.target.secret == SECRET
    with Seat(bare) as server:
        assert [one.name for one in book_of(server).recipients] == ["team"]
    ann.clone.git("config", "gitgate.notify.shared", "true")
    assert [one.name for one in book_of(ann).recipients] == ["team"]


def test_an_address_that_the_machine_names_too_is_the_machines(bare: Clone, ann: Seat) -> None:
    """Once, by what the machine says of it."""
    protected(bare, ann.clone, TEAM)
    add(bare, "ours=webhook https://example.org/token")
    with Seat(bare) as server:
        assert [(one.name, one.only) for one in book_of(server).recipients] == [("ours", "low")]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{address: desktop}", "programs of a machine are named by its own configuration"),
        ("{address: command /bin/true}", "programs of a machine are named by its own configuration"),
        ('{address: "webhook http://127.0.0.1:80/"}', "begins with https://"),
        ('{address: "slack://a/b/c", onyl: high}', "did you mean only?"),
        ('{address: "slack://a/b/c", only: very}', "expected one of urgent, high"),
        ('{address: "slack://a/b/c", secret: x}', "expected one of address, name"),
        ('{address: "slack://a/b/c", name: "a b"}', "a name of letters"),
        ("{name: x}", "address"),
        ("text", "expected a mapping"),
    ],
)
def test_a_wrong_entry_of_the_branch_is_named(bare: Clone, ann: Seat, entry: str, words: str) -> None:
    """With its line; the entry after it counts nevertheless."""
    protected(bare, ann.clone, f'notify:\n  - {entry}\n  - address: "json://example.org"\n')
    with Seat(bare) as server:
        book = book_of(server)
    assert [one.name for one in book.recipients] == ["json"]
    (wrong,) = book.unusable
    assert words in wrong.words
    assert ".gitgate.yml, line 2" in wrong.words


def test_a_broken_file_of_the_branch_leaves_the_machines_own(bare: Clone, ann: Seat) -> None:
    protected(bare, ann.clone, "notify: [\n")
    add(ann.clone, "desktop")
    book = book_of(ann)
    assert [one.name for one in book.recipients] == ["desktop"]
    assert len(book.unusable) == 1


def examined(desk: Desk) -> list[tuple[str, str]]:
    return [(one.state, one.words) for one in examine_addresses(desk)]


def test_doctor_says_how_each_stands(alone: Seat, cli: Command) -> None:
    """What cannot be told from here is wrong, with what mends it; what is misspelt, too."""
    add(
        alone.clone,
        "command true",
        "webhook https://example.org/token",
        "command nothing-of-this-name",
        "destkop",
    )
    found = examined(alone.desk)
    assert (GOOD, "command (command true) is told of gates, by git config") in found
    wrong = " ".join(words for state, words in found if state == WRONG)
    assert "webhook: a webhook needs a secret" in wrong
    assert "the program nothing-of-this-name is not there" in wrong
    assert "did you mean desktop?" in wrong
    said = cli.quick("doctor", cwd=alone.clone.path, code=1).out
    assert "notify: command (command true) is told" in " ".join(said.split())


def test_doctor_misses_it_on_a_server(bare: Clone) -> None:
    """Where nobody is told, a gate waits until somebody looks."""
    with Seat(bare) as server:
        assert "nobody is told of a gate that is pushed here" in examined(server.desk)[0][1]
    bare.git("config", "gitgate.notify", "desktop")
    with Seat(bare) as server:
        assert examined(server.desk)[0][0] == WRONG
