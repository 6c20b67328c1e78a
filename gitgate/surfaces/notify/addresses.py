"""Surfaces: who is told, how, of what, and in which words. Addresses come from this machine's configuration and from the protected
branch, never from a working tree. The words are plain and inert: whoever shows them obeys none of them.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ... import text as times
from ...config import BY_NAME, FILE, OF_NOTIFY, TRUE, close_name, misfit
from ...context import Desk
from ...context.logins import Logins
from ...context.machine import state_home
from ...document import Field, codec, may_have
from ...errors import BadDocument, GateError
from ...gates.recording import NAMED, usual_name
from ...model import AWAITING, FAILED, PRIORITIES, run_status, split_person
from ...model.gate import Gate, Outcome
from ...policy import Book, protected_refs
from ...policy.permit import explain
from ...policy.ruling import Who
from ...record import loose_ends
from ...record.runs import Run, last_reason, told_reason
from ...render import shapes
from ...store.git import machine_values
from ...store.git.protected import Protected, read_protected
from ...text import one_line
from . import Channel, Endpoint, Notification
from .chat import ChatChannel
from .command import CommandChannel
from .desktop import DesktopChannel
from .webhook import WebhookChannel

# Who is told, and how: from this machine's configuration and from the protected branch, never from a
# working tree.
#
#   git config --add gitgate.notify desktop
#   git config --add gitgate.notify 'team=webhook https://example.org/gates'
#   git config gitgate.notify.team.only urgent


SECTION = "notify"
KEY = "gitgate.notify"
# What the protected branch may say of an address. A secret stands in no repository.
IN_BRANCH = ("address", "name", "to", "only", "quiet", "detail", "url")  # `detail` did something once
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
    """Address, and what it is to hear of. `source`: this machine's configuration, or the protected branch's file."""

    name: str
    channel: Channel
    target: Endpoint = field(repr=False)
    source: str
    to: tuple[str, ...] = ()
    only: str = "low"
    quiet: str = ""
    url: str = ""

    @property
    def digest(self) -> str:
        """Digest that distinguishes addresses and reveals none."""
        return hashlib.sha256(f"{self.channel.kind} {self.target.words}".encode()).hexdigest()

    @property
    def shown(self) -> str:
        return self.channel.shown(self.target)


@dataclass(frozen=True)
class Unusable:
    """Line that names no usable address: where it is, what is wrong, and what mends it."""

    where: str
    words: str
    mend: str


@dataclass(frozen=True)
class AddressBook:
    """Addresses that are notified from here. `elsewhere`: those of the protected branch that the server notifies."""

    recipients: tuple[Recipient, ...] = ()
    elsewhere: tuple[Recipient, ...] = ()
    unusable: tuple[Unusable, ...] = ()

    def find(self, digest: str) -> Recipient | None:
        return next((one for one in self.recipients if one.digest == digest), None)


def load_addresses(desk: Desk) -> AddressBook:
    """Return the addresses that count here, each once, whoever names it. A wrong line does not affect the others."""
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
    """Return whether the protected branch's addresses are notified here: on a server, or where a setting says so."""
    return values.get(f"{KEY}.shared", ["false"])[-1].lower() in TRUE or is_server(desk)


def is_server(desk: Desk) -> bool:
    return desk.settings.flag("server") or desk.repo.bare


def own_recipients(
    desk: Desk, values: Mapping[str, list[str]], unusable: list[Unusable]
) -> Iterator[Recipient]:
    """Yield the addresses of this machine's own configuration."""
    for line in values.get(KEY, [])[:MOST]:
        named = re.fullmatch(NAMED, line.strip())
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
    """Yield an address with the options for its name, else for all. A wrong option leaves it out, since it might reveal
    too much, or to too many.
    """
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
        url=said.get("url", plain.url),
    )


def branch_recipients(
    desk: Desk, values: Mapping[str, list[str]], unusable: list[Unusable]
) -> Iterator[Recipient]:
    """Yield the addresses of the protected branch. A wrong entry does not affect the others."""
    try:
        found = read_protected(desk.refs, desk.records.objects, FILE, protected_refs(desk))
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
    if not re.fullmatch(NAMED, f"{name}="):
        given.get("name", address).fail("expected a name of letters, digits, _ and -")
    secret = next((values[k][-1] for k in (f"{KEY}.{name}.secret", f"{KEY}.secret") if k in values), "")
    target = Endpoint(words, secret, False, desk.settings.env, desk.repo.top)
    if wrong := channel.misfit(target):
        address.fail(f"expected {wrong}")
    return optioned(Recipient(name, channel, target, address.source), options_of(given))


def options_of(given: Mapping[str, Field]) -> dict[str, str]:
    said: dict[str, str] = {}
    for option in ("to", "only", "quiet", "url"):
        if option not in given:
            continue
        one = given[option]
        listed = option == "to" and isinstance(one.value, list)
        said[option] = ",".join(who.text(most=200) for who in one.items()) if listed else one.text(most=500)
        if expected := misfit(BY_NAME[f"notify.{option}"], said[option]):
            one.fail(f"expected {expected}")
    return said


def clue(text: str) -> str:
    """Return the beginning of a wrong value, enough to find it: the rest may be a secret."""
    return one_line(re.split(r"://|\s", text, maxsplit=1)[0], 30) + (
        "…" if re.search(r"://|\s", text) else ""
    )


def split_address(text: str) -> tuple[Channel | None, str]:
    """Return the channel that an address names, and the words after its name. A chat's address is kept whole."""
    word, _, rest = text.strip().partition(" ")
    if "://" in word:
        return CHATS, text.strip()
    return (CHANNELS.get(word) if word != CHATS.kind else None), rest.strip()


# Of what people are told, and in which words. The words are plain and inert: whoever shows them obeys
# none of them.


HEADS = {
    "opened": "Question",
    "reminded": "Still waiting",
    "deadline": "Due soon",
    "failed": "Could not go on",
    "unfinished": "Stopped short",
    "test": "Test",
}
RUN_HEADS = {
    "run:completed": "Completed",
    "run:failed": "Failed",
    "run:stuck": "Stuck",
    "run:stalled": "Cannot go on here",
}
ASKING = ("opened", "reminded", "deadline")
MOST_TITLE = 160
NEAR_PART, NEAR_MOST = 4, 3600
# What chats and desktops make mentions, links, markup or commands of.
ACTING = str.maketrans({"<": "‹", ">": "›", "@": "＠", "`": "'", "|": "¦"})
LINKING = re.compile(r"(?<=\w)://(?=\S)|(?<=\])\((?=\S)|(?<=www)\.", re.IGNORECASE)


@dataclass(frozen=True)
class Occasion:
    """Event of which people are notified: each `key` happens once. `at`: when it was; `due`: not sent before."""

    gate: str
    event: str
    key: str
    at: str
    due: float = 0.0


def occasions(gate: Gate) -> Iterator[Occasion]:
    """Yield the occasions of a gate as it is now."""
    if gate.state == AWAITING:
        aside = gate.later or ""
        if aside:  # nobody hears of it before that is over, and then that it still waits
            yield Occasion(gate.id, "reminded", aside, aside, times.parse_time(aside))
        else:
            yield Occasion(gate.id, "opened", "opened", gate.opened.asked.at)
        reminded = [
            entry
            for entry in gate.history
            if entry.name == "reminded" and getattr(entry.event, "at", "") >= aside
        ]
        for entry in reminded[-1:]:
            yield Occasion(
                gate.id, "reminded", entry.commit, entry.event.at if hasattr(entry.event, "at") else ""
            )
        if gate.deadline and gate.opened.on_timeout not in ("remind", "defer"):
            end = times.parse_time(gate.deadline)
            near = min(NEAR_MOST, (gate.timeout or NEAR_PART * NEAR_MOST) / NEAR_PART)
            due = max(end - near, times.parse_time(aside) if aside else 0.0)
            if due < end:
                yield Occasion(gate.id, "deadline", gate.deadline, gate.deadline, due)
    outcome = last_outcome(gate)
    if outcome is not None:
        commit, event = outcome
        if gate.state == FAILED:
            yield Occasion(gate.id, "failed", commit, event.at)
        elif event.result == "resumed" and loose_ends(event):
            yield Occasion(gate.id, "unfinished", commit, event.at)


def run_occasion(run: Run) -> Occasion | None:
    """Return how a run ended, or that it cannot go on; None otherwise. A run that a person stopped is no news."""
    last = next((entry.event for entry in reversed(run.events) if entry.event.name != "noted"), run.started)
    event = f"run:{run_status(run.state, last_reason(run))}"
    return Occasion(run.id, event, str(last.n), last.at) if event in RUN_HEADS else None


def last_outcome(gate: Gate) -> tuple[str, Outcome] | None:
    for entry in reversed(gate.history):
        if isinstance(entry.event, Outcome):
            return entry.commit, entry.event
    return None


def is_over(gate: Gate | None, event: str, key: str) -> bool:
    """Return whether there is nothing to send any more: the gate was answered, or has another deadline."""
    if gate is None:
        return True
    return not any(one.event == event and one.key == key for one in occasions(gate))


def concerns(desk: Desk, book: Book | None, recipient: Recipient, gate: Gate, who: str) -> bool:
    """Return whether an address is to hear of this gate. `who`: the person of this machine, if it is one person's."""
    if PRIORITIES.index(gate.priority) > PRIORITIES.index(recipient.only):
        return False
    people = recipient.to or ((who,) if who and recipient.target.own else ())
    return not people or any(may(desk, book, gate, one) for one in people)


def run_concerns(recipient: Recipient, run: Run, who: str) -> bool:
    """Return whether an address is to hear of this run: one for some people hears of the runs they started."""
    if PRIORITIES.index("normal") > PRIORITIES.index(recipient.only):
        return False
    people = recipient.to or ((who,) if who and recipient.target.own else ())
    by = {name.lower() for name in names_of(run.started.text("by"))}
    return not people or not by or any(by & {word.lower() for word in names_of(one)} for one in people)


def may(desk: Desk, book: Book | None, gate: Gate, person: str) -> bool:
    """Return whether a person may answer the gate: by its names, and by the policy if the person has an address."""
    name = person if " <" in person or "@" not in person.lstrip("@") else f" <{person}>"
    wanted = {word.lower() for word in (person.lstrip("@"), *names_of(name))}
    if gate.to and not wanted & {one.strip().lstrip("@").lower() for one in gate.to}:
        return False
    if book is None or not book.policies or "@" not in name:
        return True
    who = Who("", login=name[1:]) if name.startswith("@") else Who(name.strip())
    try:
        return explain(desk, book, gate, who).allowed
    except GateError:
        return True  # it is broken, and somebody has to see it


def names_of(person: str) -> tuple[str, ...]:
    """Return a person's names, as `gates.is_meant_for` knows them: the name, the address, and its part before the @."""
    name, _, rest = person.partition(" <")
    return tuple(word for word in (name.strip(), rest.rstrip(">"), rest.partition("@")[0]) if word)


def inert(text: str, most: int | None = None) -> str:
    """Return words that do nothing where they are shown: no markup, no mention, no link, no character that acts."""
    return LINKING.sub(lambda found: f"{found.group()} ", one_line(text, most).translate(ACTING))


def notification(desk: Desk, recipient: Recipient, gate: Gate, occasion: Occasion) -> Notification:
    """Return the notification of a gate's event for one recipient."""
    title = f"{HEADS[occasion.event]}: {inert(gate.opened.title, MOST_TITLE)}"
    shape = gate_shape(desk, gate)
    url = url_for(desk, recipient, gate, occasion)
    lines = [told_by(desk, gate, occasion), url or command_for(gate, occasion)]
    name = message_id(gate.id, occasion.event, occasion.key, recipient.digest)
    text = "\n".join(line for line in lines if line)
    urgent = gate.priority == "urgent"
    whole = told_shape(occasion.event, name, title, text, shape, url, command_for(gate, occasion))
    return Notification(name, occasion.event, gate.id, title, text, urgent, whole)


LINK = "{link}"


def url_for(desk: Desk, recipient: Recipient, gate: Gate, occasion: Occasion) -> str | None:
    """Return the address that `notify.url` gives for this gate. `{link}` becomes a link to the gate at the desk that is
    served here, for one answer in this person's name.

    Only their own addresses have that link, and only where there is something to answer. A desktop has none: its words
    are on a program's command line, which every account of the machine can read.
    """
    url = recipient.url.replace("{id}", gate.id)
    if LINK not in url:
        return url or None
    home = state_home(desk.settings.env)
    private = recipient.target.own and recipient.channel.kind != "desktop"
    if home is None or not private or occasion.event not in ASKING:
        return None
    link = Logins(home, desk.clock).new_link(gate.id)
    return url.replace(LINK, link) if link else None


def run_notification(desk: Desk, recipient: Recipient, run: Run, occasion: Occasion) -> Notification:
    """Return the notification of a run's end for one recipient."""
    started, name = run.started, inert(run.started.text("name") or run.flow, MOST_TITLE)
    title = f"{RUN_HEADS[occasion.event]}: {name}"
    age = times.ago(max(0.0, desk.clock() - times.parse_time(started.at)))
    who = inert(split_person(started.text("by")), 80)
    reason, command = inert(told_reason(run), 400), f"git gate show {run.id[:6]}"
    about = (
        f"run {run.id} in {inert(repository_name(desk), 60)}, begun {age} ago{f' by {who}' if who else ''}"
    )
    shape = {
        "id": run.id,
        "flow": inert(run.flow, MOST_TITLE),
        "name": name,
        "status": occasion.event.partition(":")[2],
        "reason": reason or None,
        "by": who or None,
        "started": started.at,
        "repository": inert(repository_name(desk), 80),
    }
    name = message_id(run.id, occasion.event, occasion.key, recipient.digest)
    text = "\n".join(line for line in (about, reason, command) if line)
    whole = told_shape(occasion.event, name, title, text, None, None, command) | {"run": shape}
    return Notification(name, occasion.event, run.id, title, text, False, whole)


def told_shape(
    event: str, name: str, title: str, text: str, gate: dict[str, Any] | None, url: str | None, command: str
) -> dict[str, Any]:
    fields = {"event": event, "id": name, "title": title, "text": text, "gate": gate}
    return shapes.thing("notification", {**fields, "url": url, "command": command})


def gate_shape(desk: Desk, gate: Gate) -> dict[str, Any]:
    """Return the fields of a gate that a list shows, as JSON."""
    asked = gate.opened.asked
    return {
        "id": gate.id,
        "state": gate.state,
        "title": inert(gate.opened.title, MOST_TITLE),
        "type": gate.opened.questions[0].type,
        "priority": gate.priority,
        "asked": {"agent": inert(asked.agent, 80), "by": inert(split_person(asked.by), 80), "at": asked.at},
        "to": [inert(one, 80) for one in gate.to],
        "branch": inert(gate.opened.work.branch or "", 80) or None,
        "deadline": gate.deadline,
        "repository": inert(repository_name(desk), 80),
        "run": run_shape(gate),
    }


def run_shape(gate: Gate) -> dict[str, Any] | None:
    """Return the run of a flow that asks, and its step."""
    said = shapes.run_named(gate.opened)
    return (
        None if said is None else {key: inert(str(word), 120) if word else None for key, word in said.items()}
    )


def repository_name(desk: Desk) -> str:
    place = desk.repo.common_dir
    return (place.parent if place.name == ".git" else place).name.removesuffix(".git")


def told_by(desk: Desk, gate: Gate, occasion: Occasion) -> str:
    """Return who asks, where, how long ago, and how urgently."""
    asked = gate.opened.asked
    age = times.ago(max(0.0, desk.clock() - times.parse_time(asked.at)))
    left = times.parse_time(gate.deadline) - desk.clock() if gate.deadline else 0.0
    parts = (
        f"{inert(asked.agent, 60)} in {inert(repository_name(desk), 60)}",
        f"{age} ago",
        f"run {gate.opened.run}" if gate.opened.run else "",
        "" if gate.priority == "normal" else f"priority {gate.priority}",
        f"due in {times.ago(left)}" if occasion.event in ASKING and left > 0 else "",
    )
    return ", ".join(part for part in parts if part)


def command_for(gate: Gate, occasion: Occasion) -> str:
    return f"git gate {'respond' if occasion.event in ASKING else 'show'} {gate.id[:6]}"


def message_id(gate: str, event: str, key: str, address: str) -> str:
    """Return an id that is equal for one event and address, whoever sends it, however often."""
    return "msg_" + hashlib.sha256(f"{gate} {event} {key} {address}".encode()).hexdigest()[:32]


def quiet_until(hours: str, now: float) -> float:
    """Return when these quiet hours are over by this machine's clock; 0 where they are not now."""
    if not hours:
        return 0.0
    begin, end = (int(part[:2]) * 60 + int(part[3:]) for part in hours.split("-"))
    local = time.localtime(now)
    minute = local.tm_hour * 60 + local.tm_min
    inside = begin <= minute < end if begin <= end else (minute >= begin or minute < end)
    return now - local.tm_sec + ((end - minute) % (24 * 60)) * 60 if inside else 0.0
