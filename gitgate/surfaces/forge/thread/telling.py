"""Surfaces: the short replies to those whose word did not count: pure. Each is said once; its first line is the mark of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....model.gate import Gate
from ..hosts.forge import Comment
from ..replies.examples import examples
from .words import block, span


@dataclass(frozen=True)
class ReplyNote:
    """A reply of ours. `mark` is its first line; where that stands already, it was said."""

    mark: str
    text: str

    @property
    def body(self) -> str:
        return f"{self.mark}\n{self.text}\n"


def about(comment: Comment) -> str:
    return f"<!-- gitgate told=c{comment.number} -->"


def person(comment: Comment) -> str:
    return f"<!-- gitgate told=p{comment.author.number}"


def counted(comment: Comment) -> str:
    return f"<!-- gitgate told=c{comment.number} counted -->"


def hinted(comment: Comment, gate: str) -> str:
    return f"<!-- gitgate told=h{comment.author.number} gate={gate} -->"


def was_hinted(comment: Comment, gate: str, ours: Sequence[Comment]) -> bool:
    return any(said.body.startswith(hinted(comment, gate)) for said in ours)


def was_told(comment: Comment, ours: Sequence[Comment]) -> bool:
    """Whether one of ours is about this comment, or told its author after it that their word does not count."""
    return any(
        said.body.startswith((about(comment), counted(comment)))
        or (said.body.startswith(f"{person(comment)} ") and said.created >= comment.created)
        for said in ours
    )


def who(comment: Comment) -> str:
    return f"[{span(comment.author.login, 60)}]({comment.url})"


def unpermitted(comment: Comment, gate: str) -> ReplyNote:
    """Once for each person and gate, however often they try."""
    mark = f"{person(comment)} gate={gate} -->"
    return ReplyNote(
        mark, f"{who(comment)}: this is no answer. It takes somebody who may write to this repository."
    )


def edited(comment: Comment) -> ReplyNote:
    words = "this comment was edited, so nobody can tell what was said. Please reply with a new one."
    return ReplyNote(about(comment), f"{who(comment)}: {words}")


def unclear(comment: Comment, why: str, gates: Sequence[Gate], waiting: Sequence[str] = ()) -> ReplyNote:
    """What was not understood, and what would be: every way to answer the gate that it was about, or one for each of several."""
    lines = [f"{who(comment)}: this could not be taken as an answer: {span(why, 300)}"]
    if gates:
        lines.append("One of these would be:\n\n" + block("\n".join(ways(gates, waiting)), 2000, fold=False))
    return ReplyNote(about(comment), "\n\n".join(lines))


def ways(gates: Sequence[Gate], waiting: Sequence[str]) -> list[str]:
    if len(gates) == 1:
        return examples(gates[0], "" if list(waiting) == [gates[0].id] else gates[0].id, waiting)
    return [next(iter(examples(gate, gate.id, waiting)), f"/answer {gate.id} …") for gate in gates]


def hint(comment: Comment, gate: Gate, waiting: Sequence[str]) -> ReplyNote:
    """What names a gate and may be talk about it. Once for each person and gate: threads are for talking."""
    return ReplyNote(
        hinted(comment, gate.id),
        f"{who(comment)}: this names gate **{gate.id}**, and nobody can tell whether it was to be its answer. "
        f"An answer begins with `{gate.id}:`, or is one of these:\n\n"
        + block("\n".join(examples(gate, gate.id, waiting)), 2000, fold=False),
    )


def too_late(comment: Comment, why: str) -> ReplyNote:
    return ReplyNote(
        about(comment), f"{who(comment)}: this came too late and has no effect: {span(why, 300)}"
    )


def ending_words(gate: Gate) -> str:
    """Why it waits no more."""
    if gate.answer is not None:
        by = gate.answer.answer.by.partition(" <")[0] or "a default"
        return f"{by} was first, at {gate.answer.answer.at}"
    return f"gate {gate.id} is {gate.state}"


def changed(comment: Comment, why: str) -> ReplyNote:
    words = "the question changed after it was read. Please look again, and reply with a new comment"
    return ReplyNote(about(comment), f"{who(comment)}: {words}: {span(why, 300)}")


def elsewhere(comment: Comment, gate: str, place: str) -> ReplyNote:
    """A reply that counts for a gate that is shown in another thread."""
    where = f"is asked [there]({place})" if place else "is shown in no thread"
    return ReplyNote(counted(comment), f"{who(comment)}: this counts for gate **{gate}**, which {where}.")


def not_acted_on(gate: str, answer: str, why: str) -> ReplyNote:
    """Once for each answer: it is in the record, and nobody will be started by it."""
    mark = f"<!-- gitgate told=d{answer} gate={gate} -->"
    return ReplyNote(
        mark,
        f"Gate **{gate}** is answered, and no job acts on that by itself: {span(why, 300)}. "
        "Somebody who may write to this repository and has looked at it can start the agent:\n\n"
        + block(f"git gate github dispatch {gate}", 200, fold=False),
    )


def kept_back(gate: str, answer: str, agent: str) -> ReplyNote:
    """The same where no job can act on it, whoever asks for one."""
    mark = f"<!-- gitgate told=d{answer} gate={gate} -->"
    return ReplyNote(
        mark,
        f"Gate **{gate}** is answered, and no job can act on that: its session stayed where {span(agent, 60)} asked. "
        "There, whoever asked can start the agent:\n\n" + block(f"git gate resume {gate}", 200, fold=False),
    )


def left(what: str, branch: str, tip: str, why: str, compare: str) -> ReplyNote:
    """What an agent made is on a branch of ours, and somebody has to bring it to its own, or to leave it. Once for each tip."""
    because = f": {span(why, 300)}" if why else ""
    return ReplyNote(
        f"<!-- gitgate told=b{tip} -->",
        f"{what} the agent made is on {span(branch, 100)}{because}. [Compare, and merge it]({compare}); "
        f"or delete {span(branch, 100)}, and it is left.",
    )


def refused(comment: Comment, why: str) -> ReplyNote:
    return ReplyNote(about(comment), f"{who(comment)}: this is no answer here: {span(why, 300)}")
