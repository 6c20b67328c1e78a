"""Record: each event as a file and back, one row an event; and the gate that a record's events amount to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .. import model
from ..document import (
    MOST_READ,
    Field,
    NamedTuple,
    codec,
    dataclass,
    digest,
    mapping,
    moment,
    names_of,
    oid,
    oids,
    one_of,
    replace,
    text_or_empty,
    texts,
)
from ..errors import BadDocument, BrokenRecord, IllegalEvent
from ..model import AWAITING, CAUSES, ENDED, HANDED_BACK, OUTCOMES, PRIORITIES, VERDICTS, split_person, traits
from ..model.gate import (
    Answer,
    Claim,
    Counted,
    Edit,
    Entry,
    Event,
    Gate,
    Opened,
    Outcome,
    Remark,
    Tally,
    Value,
    parse_held,
    plain_held,
)
from ..questions.file import parse_opened, plain_opened
from .terms import changed_terms, with_edit

if TYPE_CHECKING:
    from ..model.gate import Conversation

# Each event as a file, and back; one row an event. The question's own file is told in `questions.file`.


VERSION = 1


class EventKind(NamedTuple):
    """Kind of an event: the folder and the file that go with its name."""

    name: str
    folder: str
    parse: Callable[[Field], Event]


def dump_event(event: Event) -> bytes:
    """Return the bytes of an event's file."""
    return codec.dump_document(
        {"hitl": VERSION, **{k: v for k, v in plain_event(event).items() if v not in (None, "", [], {})}}
    )


def plain_event(event: Event) -> dict[str, object]:
    if isinstance(event, Opened):
        return plain_opened(event)
    if isinstance(event, Answer):
        return {
            "gate": event.gate,
            "values": dict(event.values),
            "verdict": event.verdict,
            "note": event.note,
            "by": event.by,
            "via": event.via,
            "at": event.at,
            "seen": event.seen,
            "amends": event.amends,
            "evidence": dict(event.evidence),
            "session": plain_session(event.session),
        }
    if isinstance(event, Remark):
        said = {"at": event.at, "by": event.by, "text": event.text, "via": event.via}
        return {**said, "session": plain_session(event.session)}
    if isinstance(event, Edit):
        listed: dict[str, object] = {} if event.to is None else {"to": list(event.to) or "anyone"}
        listed |= {"to_holds": True} if event.to_holds else {}
        fields = {"at": event.at, "by": event.by, **listed, "priority": event.priority}
        return {
            **fields,
            "deadline": cleared(event.deadline),
            "timeout": event.timeout,
            "later": "now" if event.later == "" else event.later,
        }
    flat = {name: getattr(event, name) for name in names_of(event)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in flat.items()}


def plain_session(held: Conversation | None) -> dict[str, object] | None:
    if held is None:
        return None
    return plain_held(held)


def parse_session(root: Field, *endings: str) -> Conversation | None:
    """Return the conversation that ended with this event."""
    found = root.get("session")
    if found is None:
        return None
    return parse_held(found, endings)


def cleared(deadline: str | None) -> str | None:
    return "never" if deadline == "" else deadline


def parse_answer(root: Field) -> Answer:
    values = root.need("values")
    return Answer(
        gate=root.need("gate").text(most=20),
        values={key: as_value(field) for key, field in values.mapping().items()},
        verdict=root.need("verdict").one_of(VERDICTS),
        at=moment(root.need("at")),
        seen=oid(root, "seen") or root.fail("expected the commit that was seen"),
        by=text_or_empty(root, "by"),
        via=text_or_empty(root, "via") or "cli",
        note=text_or_empty(root, "note", MOST_READ),
        amends=oid(root, "amends"),
        evidence=mapping(root, "evidence"),
        session=parse_session(root, "completed"),
    )


def parse_remark(root: Field) -> Remark:
    return Remark(
        at=moment(root.need("at")),
        by=text_or_empty(root, "by"),
        text=text_or_empty(root, "text", MOST_READ),
        via=text_or_empty(root, "via") or "cli",
    )


def parse_comment(root: Field) -> Remark:
    """Return a remark. It may be an outcome that a conversation proposed, and that nobody has confirmed."""
    return replace(parse_remark(root), session=parse_session(root, "proposed", "left"))


def parse_stop(root: Field) -> Remark:
    """Return a stop. It may be the end of a conversation that came to no answer."""
    return replace(parse_remark(root), session=parse_session(root, "cancelled", "timeout"))


def parse_edit(root: Field) -> Edit:
    to, deadline, timeout = root.get("to"), root.get("deadline"), root.get("timeout")
    later = root.get("later")
    listed = None if to is None else (() if to.value == "anyone" else texts(root, "to"))
    return Edit(
        at=moment(root.need("at")),
        by=text_or_empty(root, "by"),
        to=listed,
        priority=one_of(root, "priority", PRIORITIES, "") or None,
        deadline=None if deadline is None else "" if deadline.value == "never" else moment(deadline),
        timeout=timeout.integer(0, 10**10) if timeout else None,
        later=None if later is None else "" if later.value == "now" else moment(later),
        to_holds=holds.boolean() if (holds := root.get("to_holds")) else False,
    )


def parse_reminder(root: Field) -> Edit:
    """Return a reminder. It moves the deadline, may set the gate for later, and nothing else: nobody asked for it."""
    later = root.get("later")
    return Edit(
        at=moment(root.need("at")),
        deadline=moment(root.need("deadline")),
        later=moment(later) if later is not None else None,
    )


def parse_claim(root: Field) -> Claim:
    return Claim(
        at=moment(root.need("at")),
        answer=oid(root, "answer") or root.fail("expected the commit of the answer"),
        nonce=root.need("nonce").text(most=100),
        runner=root.need("runner").text(most=100),
        host=text_or_empty(root, "host"),
        attempt=root.need("attempt").integer(1, 10**6),
        term=root.need("term").integer(1, 10**7),
        by=text_or_empty(root, "by"),
        anchor=digest(root, "anchor"),
    )


def parse_outcome(root: Field) -> Outcome:
    said = Outcome(
        at=moment(root.need("at")),
        claim=oid(root, "claim") or root.fail("expected the commit of the claim"),
        result=root.need("result").one_of(OUTCOMES),
        by=text_or_empty(root, "by"),
        reason=text_or_empty(root, "reason", MOST_READ),
        log=text_or_empty(root, "log", 4096),
        branch=text_or_empty(root, "branch", 1000),
        commits=oids(root, "commits"),
        reveal=digest(root, "reveal"),
        said=text_or_empty(root, "said", MOST_READ),
        denied=texts(root, "denied"),
        left=texts(root, "left"),
        place=text_or_empty(root, "place", 4096),
        meant=text_or_empty(root, "meant", 1000),
    )
    return replace(said, cause=cause_of(root, said))


def cause_of(root: Field, said: Outcome) -> str:
    """Return the cause that the outcome names. One that is not known here counts as an attempt, as `ended` does.

    Older versions wrote none: what was handed back has that in `reason`, and no log. Of an agent that had failed, whose own
    text the reason may be, they always named the log.
    """
    named = text_or_empty(root, "cause", 100)
    if named:
        return named if named in CAUSES else ENDED
    bare = not (said.log or said.said or said.denied or said.left or said.place)
    began = bare and said.result == "released" and said.reason.partition(":")[0] == "handed back"
    return HANDED_BACK if began else ENDED


KINDS = (
    EventKind("answered", "answers", parse_answer),
    EventKind("commented", "comments", parse_comment),
    EventKind("edited", "edits", parse_edit),
    EventKind("reminded", "reminders", parse_reminder),
    EventKind("withdrawn", "withdrawals", parse_remark),
    EventKind("stopped", "stops", parse_stop),
    EventKind("expired", "expiries", parse_remark),
    EventKind("claimed", "claims", parse_claim),
    EventKind("outcome", "outcomes", parse_outcome),
)
BY_FOLDER = {kind.folder: kind for kind in KINDS}
FOLDER_OF = {kind.name: kind.folder for kind in KINDS}


def parse_event(folder: str | None, data: bytes, source: str) -> Event:
    """Return the event in a file; without a folder that is `question.yaml`."""
    root = codec.parse_document(data, source)
    version = root.need("hitl")
    if type(version.value) is not int or version.value != VERSION:
        version.fail(f"this gitgate reads version {VERSION} of the format; upgrade it to read this gate")
    if folder is None:
        return parse_opened(root)
    if folder not in BY_FOLDER:
        raise BadDocument(source, 0, "", f"{folder}/ is not a folder of events")
    return BY_FOLDER[folder].parse(root)


def as_value(field: Field) -> Value:
    value = field.plain()
    if isinstance(value, (str, bool, dict)):
        return value
    if isinstance(value, list):
        labels = [part for part in value if isinstance(part, str)]
        if len(labels) == len(value):
            return labels
    return field.fail("expected text, true or false, a list of labels, or a form")


# A gate is the fold of its record's commits, along first parents, from what each of them adds; and two
# records made one.
#
# No clock, no commit dates, never the tip's tree: the same tip gives the same gate everywhere.


_RESULTS = {"resumed": "resumed", "released": "released", "failed": "failed"}


def fold(gate_id: str, entries: Sequence[Entry]) -> Gate:
    """Return the gate that these events make, oldest first."""
    (gate,) = deque(stages(gate_id, entries), maxlen=1)
    return gate


def stages(gate_id: str, entries: Sequence[Entry]) -> Iterator[Gate]:
    """Return the gate as it was after each of its events."""
    if not entries or not isinstance(entries[0].event, Opened):
        raise broken(gate_id, "the record does not begin with a question")
    gate = begin(gate_id, entries[0], entries[0].event)
    yield gate
    for entry in entries[1:]:
        try:
            gate = apply(gate, entry)
        except IllegalEvent as illegal:
            raise broken(gate_id, f"commit {entry.commit[:12]}: {illegal.message}") from illegal
        yield gate


def broken(gate_id: str, words: str) -> BrokenRecord:
    return BrokenRecord(words, about=f"gate {gate_id}")


def begin(gate_id: str, entry: Entry, opened: Opened) -> Gate:
    return Gate(
        id=gate_id,
        tip=entry.commit,
        opened=opened,
        state=model.after(None, "opened"),
        priority=opened.priority,
        to=opened.to,
        to_holds=opened.to_holds,
        deadline=opened.deadline,
        timeout=opened.timeout,
        history=(entry,),
        tally=Tally(places={entry.commit: 0}),
    )


def apply(gate: Gate, entry: Entry) -> Gate:
    """Return the gate after one more event. An event that the table does not have raises and changes nothing."""
    name = effective(gate, entry)
    after = model.after(gate.state, name)
    check_silence(gate, entry, name)
    moved = replace(
        gate,
        tip=entry.commit,
        state=after,
        history=(*gate.history, replace(entry, name=name)),
        tally=replace(gate.tally, places=with_places(gate, entry)),
    )
    event = entry.event
    if name == "repeated" or (name == "late" and not isinstance(event, Answer)):
        return moved
    if isinstance(event, Answer):
        return with_answer(moved, entry, event, name)
    if isinstance(event, Edit):
        return with_edit(moved, event)
    if isinstance(event, Claim):
        return with_claim(gate, moved, entry, event)
    if isinstance(event, Outcome):
        return with_outcome(gate, moved, event)
    if isinstance(event, Remark):
        # Words that lead nowhere are only kept; those that end the gate say why.
        return moved if after == gate.state else replace(moved, closing=event, expired=name == "expired")
    raise broken(gate.id, f"{entry.name} cannot follow an opened gate")


def effective(gate: Gate, entry: Entry) -> str:
    """Return the effective name of an event at this point, such as `late`; its file only says what was wanted."""
    event = entry.event
    if entry.repeats:
        return "repeated"
    if isinstance(event, Answer):
        return effective_answer(gate, entry, event)
    if isinstance(event, Edit):
        return "late" if is_overtaken(gate, entry, event) else entry.name
    if isinstance(event, Outcome):
        name = _RESULTS.get(event.result, "")
        return "returned" if name == "released" and gate.expired else name
    if isinstance(event, Remark) and model.traits(entry.name).talk and len(entry.parents) > 1:
        return entry.name if model.allows(gate.state, entry.name) else "late"
    return entry.name


def check_silence(gate: Gate, entry: Entry, name: str) -> None:
    """Refuse the passing of a deadline that the gate does not have, or before its time: silence must not be made up."""
    if model.traits(name).silent and (
        gate.deadline is None or getattr(entry.event, "at", "") < gate.deadline
    ):
        raise broken(
            gate.id, f"it is said to be {name}, but its deadline ({gate.deadline or 'none'}) had not passed"
        )
    if name == "reminded" and getattr(entry.event, "later", None) and gate.opened.on_timeout != "defer":
        rule = gate.opened.on_timeout
        raise broken(gate.id, f"its deadline put it aside, and nobody asked for that (on_timeout is {rule})")


def effective_answer(gate: Gate, entry: Entry, answer: Answer) -> str:
    if answer.gate != gate.id:
        raise broken(gate.id, f"an answer in its record is for gate {answer.gate}")
    if answer.seen != entry.fork and answer.seen not in entry.saw and answer.seen not in gate.tally.places:
        raise broken(gate.id, "an answer names a commit as seen that is not in the record")
    from ..questions.answers import misfit  # late: a question has no answer yet

    wrong = misfit(gate.opened, answer)
    if wrong:
        raise broken(gate.id, f"an answer does not fit: {wrong}")
    if gate.state == model.AWAITING and said_meanwhile(gate, entry, answer.by):
        return "late"
    if answer.amends is not None:
        return amendment(gate, entry, answer)
    if gate.state != model.AWAITING:
        # Only an answer recorded again after a race carries its original as second parent. Any other one that comes
        # after the decision has no row in the table.
        return "late" if len(entry.parents) > 1 else "answered"
    if answer.verdict == "defaulted":
        return "defaulted"
    return "answered" if decisive(gate, answer) else "voted"


def with_places(gate: Gate, entry: Entry) -> dict[str, int]:
    """Return the places of a record's commits and one more event's: its own, and those it was recorded again from."""
    place = len(gate.history)
    return {**dict.fromkeys(entry.parents[1:], place), **gate.tally.places, entry.commit: place}


def said_meanwhile(gate: Gate, entry: Entry, by: str) -> Counted | None:
    """Return the vote of the same person that an answer, recorded again, did not have before it.

    Only clocks could tell which of the two was said later, and they are two clocks. So the new answer replaces
    neither: the first one here counts until its author, who now sees both, says otherwise.
    """
    vote = own_vote(gate, by)
    return None if vote is None or knew(gate, entry, vote) else vote


def own_vote(gate: Gate, by: str) -> Counted | None:
    """Return the last vote of this person; None without one, or where `by` names nobody."""
    return gate.tally.votes.get(model.address(by))


def is_overtaken(gate: Gate, entry: Entry, edit: Edit) -> bool:
    """Return whether an edit is overtaken: its author changed one of its terms here, in an edit that it did not know.

    Every such edit is checked: knowing the last one does not mean knowing another, made at another clone.
    """
    if len(entry.parents) < 2 or not edit.by:
        return False
    mine, changed = model.address(edit.by), changed_terms(edit)
    for known in reversed(gate.history):
        if known.commit == entry.fork:
            break
        other = known.event
        if known.name != "edited" or not isinstance(other, Edit) or model.address(other.by) != mine:
            continue
        if not changed_terms(other) & changed:
            continue
        if not any(commit in entry.saw for commit in (known.commit, *known.parents[1:])):
            return True
        if known.fork == entry.fork and changed <= changed_terms(other):
            break  # This one had all before it that it could be overtaken by, and it comes before ours.
    return False


def knew(gate: Gate, entry: Entry, vote: Counted) -> bool:
    """Return whether a vote was recorded before the event was made. That is so for an event that is still where it was
    first recorded. One that was recorded again knows the votes of its author's own chain.
    """
    if len(entry.parents) < 2 or vote.commit in entry.saw or vote.signed_commit in entry.saw:
        return True
    places = gate.tally.places
    return entry.fork in places and places[entry.fork] >= places.get(vote.commit, 0)


def amendment(gate: Gate, entry: Entry, answer: Answer) -> str:
    """Return what an answer in place of its author's own amounts to. While a quorum needs more, it is one more vote."""
    again = len(entry.parents) > 1
    vote = own_vote(gate, answer.by)
    own = vote is not None and answer.amends in (vote.commit, vote.signed_commit)
    if gate.state == model.AWAITING and (own or again):
        return "answered" if decisive(gate, answer) else "voted"
    current = gate.answer
    if own and current is not None and answer.amends in (current.commit, current.signed_commit):
        if again and gate.state != model.ANSWERED:
            return "late"
        if decisive(gate, answer):
            return "amended"
        if not again:
            raise IllegalEvent(
                f"the gate needs {gate.opened.quorum} who agree; one alone cannot change what they decided",
                hint=model.advice(gate.state),
            )
    if again:
        return "late"
    raise broken(gate.id, "an amendment does not follow its author's own answer")


def decisive(gate: Gate, answer: Answer) -> bool:
    """Return whether an answer decides the gate: whether enough different people agree, or refuse."""
    refusing = answer.verdict == "rejected"
    enough = gate.opened.refusals if refusing else gate.opened.quorum
    if enough <= 1:
        return True
    alike = gate.tally.alike
    who = alike.get(same_values(answer.values), frozenset())
    if refusing:
        who |= alike.get("rejected", frozenset())
    return len(who | {model.address(answer.by)}) >= enough


def same_values(value: object) -> object:
    """Return a key that two values share exactly if they are equal."""
    if isinstance(value, Mapping):
        return frozenset((key, same_values(part)) for key, part in value.items())
    return tuple(map(same_values, value)) if isinstance(value, (list, tuple)) else value


def counted_entry(entry: Entry, answer: Answer) -> Counted:
    """Return an answer as it counts. One recorded again is signed where it was first written: in the second parent."""
    return Counted(entry.commit, answer, entry.parents[1] if len(entry.parents) > 1 else entry.commit)


def with_answer(gate: Gate, entry: Entry, answer: Answer, name: str) -> Gate:
    vote = counted_entry(entry, answer)
    if name == "late":
        return replace(gate, late=(*gate.late, vote))
    mine = model.address(answer.by)
    before = own_vote(gate, answer.by)
    others = gate.votes if before is None else tuple(one for one in gate.votes if one is not before)
    alike = dict(gate.tally.alike)
    for key in (before and groups(before.answer)) or ():
        alike[key] -= {mine}
    for key in groups(answer):
        alike[key] = alike.get(key, frozenset()) | {mine}
    votes = {**gate.tally.votes, mine: vote} if mine else gate.tally.votes
    tally = replace(gate.tally, votes=votes, alike=alike)
    return replace(gate, votes=(*others, vote), tally=tally, answer=vote if name != "voted" else None)


def groups(answer: Answer) -> list[object]:
    """Return the keys of the tally under which an answer counts: its values, and `rejected` for a refusal."""
    return [same_values(answer.values), *(["rejected"] if answer.verdict == "rejected" else [])]


def with_claim(before: Gate, moved: Gate, entry: Entry, claim: Claim) -> Gate:
    if before.state in (model.ANSWERED, model.EXPIRED) and not before.actionable:
        raise IllegalEvent(
            f"gate {before.id} has nobody to tell: it is {before.state}, with delivery {before.opened.delivery}",
            hint=model.advice(before.state),
        )
    told = told_commit(before)
    if claim.answer != told:
        raise broken(before.id, "a claim is for an answer that does not count")
    return replace(moved, claim=entry, outcome=None, attempts=before.attempts + 1)


def told_commit(gate: Gate) -> str:
    """Return the commit that a claim is for: that of the answer that counts, else of the expiry."""
    if gate.answer is not None:
        return gate.answer.commit
    return next((entry.commit for entry in reversed(gate.history) if entry.name == "expired"), "")


def with_outcome(before: Gate, moved: Gate, outcome: Outcome) -> Gate:
    if before.claim is None or outcome.claim != before.claim.commit:
        raise broken(before.id, "an outcome is for a claim that is not the current one")
    return replace(moved, claim=before.claim if outcome.result == "resumed" else None, outcome=outcome)


@dataclass(frozen=True)
class Reconciled:
    """Result of comparing a local record with the shared one.

    `keep`: the side whose tip is the base (`same`, `local`, `remote`). `again`: local entries to record once more
    on top of the remote tip. `dropped`: local entries that have no place there (claims, outcomes, events that
    lost).
    """

    keep: str
    again: tuple[Entry, ...] = ()
    dropped: tuple[Entry, ...] = ()


def reconcile(local: Sequence[Entry], remote: Sequence[Entry], had: str | None = None) -> Reconciled:
    """Compare two first-parent chains, both oldest first, and decide what to do with the local one.

    Claims and outcomes are never recorded again: a claim names its answer's commit, and two runners must not both
    believe that they hold it. What a person decided on one side may have no place on the other any more; whoever
    records it again finds that out, and says so.

    `had` is the tip that the shared record had before, where that is known. A shared record that does not continue
    from it was rewritten, or an event was inserted before it. That is no divergence, and nothing is taken over.
    """
    ours = [entry.commit for entry in local]
    theirs = [entry.commit for entry in remote]
    if had is not None and had not in theirs:
        raise BrokenRecord(
            f"the shared record no longer goes on from {had[:12]}, which it had: it was rewritten"
        )
    if ours == theirs:
        return Reconciled("same")
    if ours[: len(theirs)] == theirs:
        return Reconciled("local")
    if theirs[: len(ours)] == ours:
        return Reconciled("remote")
    shared = common(ours, theirs)
    if not shared:
        raise BrokenRecord("the two records begin with different commits: one of them was rewritten")
    known: dict[tuple[str, str, str], list[Event]] = {}
    for entry in remote:
        known.setdefault(label(entry), []).append(entry.event)
    originals = {parent for entry in remote for parent in entry.parents[1:]}
    again: list[Entry] = []
    dropped: list[Entry] = []
    for entry in local[shared:]:
        if entry.repeats or original(entry) in originals or entry.event in known.get(label(entry), ()):
            continue
        (again if repeatable(entry) else dropped).append(entry)
    return Reconciled("remote", tuple(again), tuple(dropped))


def common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    count = 0
    for mine, other in zip(ours, theirs, strict=False):
        if mine != other:
            break
        count += 1
    return count


def original(entry: Entry) -> str:
    """Return the commit that its author made: the second parent of one recorded again, else the commit itself."""
    return entry.parents[1] if len(entry.parents) > 1 else entry.commit


def event_folder(entry: Entry) -> str:
    return entry.path.partition("/")[0]


def label(entry: Entry) -> tuple[str, str, str]:
    """Return the key by which the same event is found among many."""
    return event_folder(entry), getattr(entry.event, "at", ""), getattr(entry.event, "by", "")


def repeatable(entry: Entry) -> bool:
    """Return whether an event is recorded again: only a person's word is, as an automatic default is nobody's."""
    if isinstance(entry.event, Answer):
        return entry.event.verdict != "defaulted"
    return traits(entry.name).said


def said_elsewhere(gate: Gate, said: Answer) -> Answer | None:
    """Return the earlier answer of a late answer's author, where that is why it is late; else None."""
    if gate.state != AWAITING:
        return None
    return next((vote.answer for vote in gate.votes if model.same_person(vote.answer.by, said.by)), None)


def why_late(gate: Gate, said: Answer) -> str:
    """Return why an answer in the record has no effect."""
    own = said_elsewhere(gate, said)
    if own is not None:
        return f"{split_person(own.by)}'s own answer of {own.at} was there first, and this one was given without it"
    if gate.answer is not None:
        return f"{split_person(gate.answer.answer.by) or 'a default'} was first, at {gate.answer.answer.at}"
    return f"gate {gate.id} was {gate.state} first"
