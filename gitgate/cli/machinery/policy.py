"""Command line: `git gate policy check`: who may answer what, by which rule, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .. import exits
from ..terminal.screen import Screen, complete_ids, explain_alone, verb

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...model.gate import Gate
    from ...policy.book import Book
    from ...policy.rules import RuleTerms


@click.group("policy", invoke_without_command=True)
@verb
def policy_command(screen: Screen) -> None:
    """Who may answer what."""
    explain_alone(screen)


@policy_command.command("check")
@click.argument("gate_id", metavar="[ID]", required=False, shell_complete=complete_ids)
@click.option("--who", metavar="PERSON", help="Somebody else: an e-mail, `Name <e-mail>`, or @login.")
@verb
def check_command(screen: Screen, gate_id: str | None, who: str | None) -> int:
    """Read the policy, and explain for a gate which rule decides whether somebody may answer it, and why.

    Without an id: the rules, or the file, line and field that are wrong. Exit 4: that person may not answer.

    \b
    git gate policy check
    git gate policy check 7k2f --who bob@example.org
    """
    from ...policy.book import load_book

    desk = screen.desk()
    book = load_book(desk)
    if gate_id is None:
        tell_rules(screen, desk, book)
        return exits.DONE
    from ...acts.reading import find_gate

    return explain_one(screen, desk, book, find_gate(desk, gate_id).gate, who)


def tell_rules(screen: Screen, desk: Desk, book: Book) -> None:
    """Every rule in its order, as it was read."""
    from ...acts.calling import load_rules
    from ...audit.policies import plain_terms, rules_of
    from ...policy.ruling import cautions
    from ...questions.calls import strange_tools
    from ...text.display import neutral

    found = rules_of(book)
    shape = [{"source": source, "rules": [plain_terms(term) for term in terms]} for source, terms in found]
    lines = []
    for source, terms in found:
        lines.append(source)
        lines += [f"  {term.name}: {terms_line(term)}" for term in terms]
    warned = [*cautions(book.policies)]
    warned += [f"approvals, {said}; it holds nothing back" for said, _ in strange_tools(load_rules(desk))]
    fields = {"policies": shape, "branch": book.ref, "notes": warned}
    screen.emit("policy", fields, neutral("\n".join(lines)))
    for caution in warned:
        screen.say(f"note: {neutral(caution)}")
    if not found:
        from ...policy.book import protected_refs

        where = ", ".join(dict.fromkeys(protected_refs(desk)))
        screen.say(
            f"there is no policy: whoever can push may answer. It would be read from .gitgate.yml on {where}"
        )


def explain_one(screen: Screen, desk: Desk, book: Book, gate: Gate, given: str | None) -> int:
    """One gate and one person: the ruling, the rules that decide, and what the work touches."""
    from ...audit.policies import explain_gate
    from ...text.display import neutral

    said = explain_gate(desk, book, gate, given)
    fields = {
        "gate": gate.id,
        "who": said.who,
        "allowed": said.allowed,
        "rule": said.rule,
        "why": said.why,
        "rules": list(said.rules),
        "paths": None if said.paths is None else list(said.paths),
        "staged_only": None if said.staged_only is None else list(said.staged_only),
    }
    lines = [f"{said.who}: {'may answer' if said.allowed else 'may not answer'} gate {gate.id}"]
    if book.policies:
        lines.append(f"rule {said.rule}: {said.why}{f' ({said.source})' if said.source else ''}")
        lines += [f"  {term.name}: {terms_line(term)}" for term in said.terms]
        lines.append(f"the work touches {touches(said.paths)}")
        lines += (
            [f"of it staged only, or in conflict: {touches(said.staged_only)}"] if said.staged_only else []
        )
    else:
        lines.append("there is no policy")
    screen.emit("ruling", fields, neutral("\n".join(lines)))
    return exits.DONE if said.allowed else exits.NOT_ALLOWED


def touches(paths: tuple[str, ...] | None) -> str:
    if paths is None:
        return "what is not known here (its work was not published): any path that a rule names"
    more = f" and {len(paths) - 8} more" if len(paths) > 8 else ""
    return f"{', '.join(paths[:8])}{more}" if paths else "no path that a rule is about"


def terms_line(term: RuleTerms) -> str:
    """A rule's terms in a line."""
    from ...text.times import format_duration

    said = [
        "anyone" if term.who is None else ", ".join(person.name for person in term.who),
        f"{term.quorum} who agree" if term.quorum > 1 else "",
        f"{term.refusals} who refuse" if term.refusals else "",
        "" if term.requester_may_answer else "not whose agent asked",
        "signed" if term.require_signed else "",
        f"within {format_duration(term.within)}" if term.within else "",
        "" if term.defaults is None else f"{'with' if term.defaults else 'without'} defaults",
        {None: "", True: "automatic", False: "no scripts"}[term.automatic],
    ]
    return " · ".join(word for word in said if word)
