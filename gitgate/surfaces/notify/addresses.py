"""Surfaces: who is told, and how: from this machine's configuration and from the protected branch, never from a working tree.

git config --add gitgate.notify desktop
git config --add gitgate.notify 'team=webhook https://example.org/gates'
git config gitgate.notify.team.only urgent
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...config import BY_NAME, FILE, OF_NOTIFY, TRUE, close_name, misfit
from ...context import Desk
from ...document import Field, may_have
from ...errors import BadDocument, GateError
from ...gates.recording import NAMED, usual_name
from ...policy import protected_refs
from ...store.git import machine_values
from ...store.git.objects import Protected, read_protected
from ...text import one_line
from .channel import Channel, Endpoint
from .chat import ChatChannel
from .command import CommandChannel
from .desktop import DesktopChannel
from .webhook import WebhookChannel

SECTION = "notify"
KEY = "gitgate.notify"
# What the protected branch may say of an address. A secret stands in no repository.
IN_BRANCH = ("address", "name", "to", "only", "quiet", "detail", "url")
MOST = 50
EXPECTED = "desktop, command PROGRAM ARG…, webhook URL, or an Apprise address such as slack://…"
ADD = "git config --add gitgate.notify desktop"

# The ways of telling somebody, by the first word of their address: a new one is a file, and a line here.
CHATS = ChatChannel()
IN_ORDER: tuple[Channel, ...] = (
    DesktopChannel(),
    CommandChannel(),
    WebhookChannel(),
    CHATS,
)
CHANNELS: dict[str, Channel] = {one.kind: one for one in IN_ORDER}


@dataclass(frozen=True)
class Recipient:
    """One address and what it is to hear. `own`: this machine's configuration names it, else the protected branch does."""

    name: str
    channel: Channel
    target: Endpoint = field(repr=False)
    source: str
    to: tuple[str, ...] = ()
    only: str = "low"
    quiet: str = ""
    detail: str = "title"
    url: str = ""

    @property
    def digest(self) -> str:
        """What tells addresses apart, and gives none away."""
        return hashlib.sha256(f"{self.channel.kind} {self.target.words}".encode()).hexdigest()

    @property
    def shown(self) -> str:
        return self.channel.shown(self.target)


@dataclass(frozen=True)
class Unusable:
    """A line that names nobody who could be told: where it stands, what is wrong, and what mends it."""

    where: str
    words: str
    mend: str


@dataclass(frozen=True)
class AddressBook:
    """Everybody who is told from here. `elsewhere`: addresses of the protected branch that the server tells."""

    recipients: tuple[Recipient, ...] = ()
    elsewhere: tuple[Recipient, ...] = ()
    unusable: tuple[Unusable, ...] = ()

    def find(self, digest: str) -> Recipient | None:
        return next((one for one in self.recipients if one.digest == digest), None)


def load_addresses(desk: Desk) -> AddressBook:
    """What counts here. Each address once, whoever names it; a wrong line stops none of the others."""
    values = machine_values(desk.repo, r"^gitgate\.notify(\.|$)")
    unusable: list[Unusable] = []
    found = [*own_recipients(desk, values, unusable), *branch_recipients(desk, values, unusable)]
    first: dict[str, Recipient] = {}
    for one in found:
        first.setdefault(one.digest, one)
    shared = serves_shared(desk, values)
    here = tuple(one for one in first.values() if one.target.own or shared)
    return AddressBook(here, tuple(one for one in first.values() if one not in here), tuple(unusable))


def serves_shared(desk: Desk, values: Mapping[str, list[str]]) -> bool:
    """Whether the protected branch's addresses are told from here: by a server alone, where nobody said otherwise."""
    return values.get(f"{KEY}.shared", ["false"])[-1].lower() in TRUE or is_server(desk)


def is_server(desk: Desk) -> bool:
    return desk.settings.flag("server") or desk.repo.bare


def own_recipients(
    desk: Desk, values: Mapping[str, list[str]], unusable: list[Unusable]
) -> Iterator[Recipient]:
    """Those of this machine's own configuration."""
    for line in values.get(KEY, [])[:MOST]:
        named = NAMED.fullmatch(line.strip())
        name, address = named.groups() if named else ("", line)
        channel, words = split_address(address)
        target = Endpoint(words, env=desk.settings.env, tree=desk.repo.top)
        wrong = EXPECTED if channel is None else channel.misfit(target)
        if channel is None or wrong:
            near = close_name(address.partition(" ")[0], CHANNELS) if channel is None else ""
            unusable.append(Unusable(KEY, f"{KEY} is {clue(address)!r}; expected {wrong}{near}", ADD))
            continue
        yield from with_options(
            Recipient(name or usual_name(address), channel, target, "git config"), values, unusable
        )


def with_options(
    plain: Recipient, values: Mapping[str, list[str]], unusable: list[Unusable]
) -> Iterator[Recipient]:
    """With what is set for its name, else for all. What does not fit leaves it out: it might tell too much, or too many."""
    said: dict[str, str] = {}
    for option in OF_NOTIFY:
        for key in (f"{KEY}.{plain.name}.{option}", f"{KEY}.{option}"):
            if key in values:
                said[option] = values[key][-1]
                if expected := misfit(BY_NAME[f"notify.{option}"], said[option]):
                    words = f"{key} is {clue(said[option])!r}; expected {expected}"
                    unusable.append(Unusable(key, words, f"git config --unset-all {key}"))
                    return
                break
    secret = said.pop("secret", "")
    yield optioned(replace(plain, target=replace(plain.target, secret=secret)), said)


def optioned(plain: Recipient, said: Mapping[str, str]) -> Recipient:
    to = tuple(who.strip() for who in said.get("to", "").split(",") if who.strip())
    return replace(
        plain,
        to=to,
        only=said.get("only", plain.only),
        quiet=said.get("quiet", plain.quiet),
        detail=said.get("detail", plain.detail),
        url=said.get("url", plain.url),
    )


def branch_recipients(
    desk: Desk, values: Mapping[str, list[str]], unusable: list[Unusable]
) -> Iterator[Recipient]:
    """Those of the protected branch. One wrong entry stops none of the others."""
    try:
        found = read_protected(desk.records.objects, FILE, protected_refs(desk))
        entries = [] if found is None else entries_of(found)
    except GateError as wrong:
        unusable.append(Unusable(FILE, wrong.message, "mend it on the protected branch"))
        return
    for entry in entries:
        try:
            yield branch_recipient(desk, entry, values)
        except BadDocument as wrong:
            unusable.append(Unusable(FILE, wrong.message, "mend it on the protected branch"))


def entries_of(found: Protected) -> list[Field]:
    if not may_have(found.data, SECTION):
        return []
    from ...document import codec

    section = codec.parse_document(found.data, found.source).get(SECTION)
    return [] if section is None else section.items()[:MOST]


def branch_recipient(desk: Desk, entry: Field, values: Mapping[str, list[str]]) -> Recipient:
    given = entry.mapping()
    for name, one in given.items():
        if name not in IN_BRANCH:
            one.fail(f"expected one of {', '.join(IN_BRANCH)}{close_name(name, IN_BRANCH)}")
    address = entry.need("address")
    channel, words = split_address(address.text(most=2000, least=1))
    if channel is None or channel.kind in ("desktop", "command"):
        address.fail(
            "expected webhook URL, or an Apprise address: programs of a machine are named by its own configuration"
        )
    name = given["name"].text(most=40) if "name" in given else usual_name(address.text())
    if not NAMED.fullmatch(f"{name}="):
        given.get("name", address).fail("expected a name of letters, digits, _ and -")
    secret = next((values[k][-1] for k in (f"{KEY}.{name}.secret", f"{KEY}.secret") if k in values), "")
    target = Endpoint(words, secret, False, desk.settings.env, desk.repo.top)
    if wrong := channel.misfit(target):
        address.fail(f"expected {wrong}")
    return optioned(Recipient(name, channel, target, address.source), options_of(given))


def options_of(given: Mapping[str, Field]) -> dict[str, str]:
    said: dict[str, str] = {}
    for option in ("to", "only", "quiet", "detail", "url"):
        if option not in given:
            continue
        one = given[option]
        listed = option == "to" and isinstance(one.value, list)
        said[option] = ",".join(who.text(most=200) for who in one.items()) if listed else one.text(most=500)
        if expected := misfit(BY_NAME[f"notify.{option}"], said[option]):
            one.fail(f"expected {expected}")
    return said


def clue(text: str) -> str:
    """The beginning of a wrong value, enough to find it: the rest may be a secret."""
    return one_line(re.split(r"://|\s", text, maxsplit=1)[0], 30) + (
        "…" if re.search(r"://|\s", text) else ""
    )


def split_address(text: str) -> tuple[Channel | None, str]:
    """The way that an address names, and what stands behind that word; a chat's address is all of it."""
    word, _, rest = text.strip().partition(" ")
    if "://" in word:
        return CHATS, text.strip()
    return (CHANNELS.get(word) if word != CHATS.kind else None), rest.strip()
