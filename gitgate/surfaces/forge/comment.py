"""Surfaces: a gate as one comment, and a pull request's questions as the page of a check run: pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...document import OID
from ...model import is_id
from ...model.gate import Answer, Gate, Outcome, Question
from ...questions.answers import value_words
from ...questions.file import told_fields
from ...questions.types import type_of
from ...render import AT_DEADLINE
from ...render.shapes import held_line, run_named, who_ended
from ...setup.workflows import ANSWERS
from ...text import format_duration, one_line
from . import examples, option_replies
from .hosts import GITHUBS, CheckNote, CheckPage, Customs
from .words import ReplyNote, Whose, block, in_words, longest_run, phrase, prose, quoted, size, span

if TYPE_CHECKING:
    from ...model.gate import Conversation

# A gate as one comment: pure. It is posted once and brought up to date; it says what is asked and how to
# reply.
#
# Its first line is a mark by which it is found again. A mark counts only in a comment that we wrote, and
# only as the first line: nothing that somebody else wrote gets there.


def talked(held: Conversation | None, most: int) -> list[str]:
    """Return how long a conversation lasted, and what of it is to be remembered. The transcript is never shown."""
    if held is None:
        return []
    said = [words for words in (held.summary, held.reason, held.message) if words]
    line = span(held_line(replace(held, transcript="")), 200)
    return [line, *([block("\n\n".join(said), min(most, 4000))] if said else [])]


def join_words(gate: Gate) -> str:
    """Return how to join the agent's session, in a clone; empty for other questions. A typed answer counts, too."""
    asked = [question for question in gate.opened.questions if question.type == "session"]
    if not asked:
        return ""
    limits = [question.talk.timeout for question in asked if question.talk and question.talk.timeout]
    lasts = f" It lasts {format_duration(min(limits))} at most." if limits else ""
    return (
        f"**Talk it over** with the agent in a clone of this repository: `git gate join {gate.id}`.{lasts} "
        "What you decide there is the answer; one typed here is an answer too.\n\n"
    )


MOST = 65_000
# How much of each part is shown, from all of it to hardly any, until the whole fits.
LIMITS = (40_000, 20_000, 8_000, 3_000, 1_000, 300, 100, 40)
MOST_VOTES = 20
MOST_SAID = 1500  # characters of an agent's last words in a comment of their own
RUN_WORDS = (("run", "id"), ("of flow", "flow"), ("at step", "step"))
LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?", re.ASCII)
UNASKED = "No review could be asked of "
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)  # of an account, as a part of an address
MARKUP = re.compile(r"[*_`#]")
MARK = re.compile(r"<!-- gitgate gate=([a-z0-9]{10}) seen=([0-9a-f]{40}|[0-9a-f]{64}) -->")
HEADS = {
    "awaiting": "⏸️ An agent asks",
    "answered": "✅ Answered",
    "resuming": "▶️ Answered; the agent goes on",
    "resumed": "✅ Answered, and acted on",
    "failed": "⚠️ Answered, but the agent failed",
    "withdrawn": "↩️ Withdrawn by who asked",
    "stopped": "⏹️ Stopped",
    "expired": "⌛ Nobody answered in time",
}


@dataclass(frozen=True)
class CommentMark:
    """Mark of a comment of ours: the gate that it shows, and the commit of the gate's record that it shows."""

    gate: str
    seen: str


@dataclass(frozen=True)
class View:
    """Facts for a gate's comment. `alone`: no other gate waits in the thread; `unheard`: no event reports a reply
    there; `gates`: all that the thread shows; `whose`: whose reply counts; `called`: the logins that are mentioned;
    `unasked`: those of them who could not be asked for a review; `jobs`: the repository has the workflow that starts
    agents again; `plain`: words without a command count, too.
    """

    gate: Gate
    stat: str = ""
    diff: str = ""
    site: str = ""
    alone: bool = True
    unheard: bool = False
    gates: tuple[str, ...] = ()
    whose: Whose | None = None
    called: tuple[str, ...] = ()
    jobs: bool = False
    plain: bool = False
    unasked: tuple[str, ...] = ()
    customs: Customs = GITHUBS


def read_mark(body: str) -> CommentMark | None:
    found = MARK.fullmatch(body.split("\n", 1)[0].strip())
    return CommentMark(found.group(1), found.group(2)) if found and is_id(found.group(1)) else None


def seen_commit(gate: Gate) -> str:
    """Return the latest commit that changed what a reader has to know. Votes and remarks do not."""
    awaiting = [entry for entry in gate.history if entry.name in ("opened", "edited")]
    return awaiting[-1].commit if awaiting else gate.tip


def render(view: View) -> str:
    """Return the whole comment, shortened to what a forge accepts."""
    text = ""
    for most in LIMITS:
        text = compose(view, most)
        if size(text) <= MOST:
            return text
    return text[: MOST // 2]


def compose(view: View, most: int) -> str:
    gate = view.gate
    parts = [
        f"<!-- gitgate gate={gate.id} seen={seen_commit(gate)} -->\n" + heading(gate),
        f"<sub>{terms_words(view)}</sub>",
        called_words(view),
        unasked_words(view),
        *(question_block(view, question, most) for question in gate.opened.questions),
        *outcome_block(view, most),
        how(view) if gate.state == "awaiting" else "",
        context_block(view, most),
        work_block(view, most),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def heading(gate: Gate) -> str:
    words = HEADS.get(gate.state, gate.state)
    if gate.state == "failed" and gate.outcome is not None and not gate.outcome.log:
        words = "⚠️ Answered, but the agent could not be started"  # nothing was written down of one that ran
    if gate.defaulted:
        words = "⌛ Nobody answered in time; the declared default applies"
    elif gate.answer is not None and gate.answer.answer.verdict == "rejected":
        words = words.replace("✅ Answered", "❌ Rejected").replace("Answered", "Rejected")
    elif gate.answer is not None and not gate.answer.answer.confirmed:
        words = words.replace("Answered", "Answered, and confirmed by nobody")
    elif gate.answer is not None and gate.answer.answer.verdict == "approved":
        words = words.replace("Answered", "Approved")
    return f"### {words}" + ("" if is_repeated(gate) else f": {phrase(gate.opened.title, 100)}")


def is_repeated(gate: Gate) -> bool:
    """Return whether the first question begins as the title does, so that the heading leaves the title out."""
    said, title = (
        MARKUP.sub("", one_line(text)) for text in (gate.opened.questions[0].prompt, gate.opened.title)
    )
    return said.startswith(title.removesuffix("…"))


def called_words(view: View) -> str:
    """Return a line that mentions the people whom the gate is for, since a mention notifies them."""
    return f"For {', '.join(f'@{login}' for login in view.called)}" if view.called else ""


def called_in(body: str) -> list[str]:
    """Return the logins that our comment mentions. Their paragraph has nobody else's words."""
    return logins_in(body, 2, "For @")


def unasked_words(view: View) -> str:
    names = ", ".join(span(f"@{login}") for login in view.unasked)
    return f"{UNASKED}{names}." if names else ""


def unasked_in(body: str) -> list[str]:
    """Return the logins that our comment says could not be asked for a review; empty where it mentions nobody."""
    return logins_in(body, 3, UNASKED) if called_in(body) else []


def logins_in(body: str, place: int, begin: str) -> list[str]:
    line = [*body.replace("\r\n", "\n").split("\n\n"), *[""] * 4][place]
    return re.findall(rf"@({LOGIN.pattern})", line) if line.startswith(begin) and "\n" not in line else []


def terms_words(view: View) -> str:
    gate, asked = view.gate, view.gate.opened.asked
    people = [account(view, login) for login in asked.logins] or [span(asked.by.partition(" <")[0], 60)]
    whose = f" (of {', '.join(people)})" if asked.logins or asked.by else ""
    words = [f"gate **{gate.id}**", f"asked by {span(asked.agent, 80)}{whose} at {one_line(asked.at, 30)}"]
    if job := job_link(view):
        words.append(f"started by {job}")
    if gate.priority != "normal":
        words.append(f"priority {gate.priority}")
    if gate.state == "awaiting" and gate.deadline:
        first = gate.deadline == gate.opened.deadline  # a reminder sets another
        within = (
            f", {format_duration(gate.opened.timeout)} after it was asked"
            if gate.opened.timeout and first
            else ""
        )
        words.append(
            f"deadline **{one_line(gate.deadline, 30)}**{within}; then {AT_DEADLINE[gate.opened.on_timeout]}"
        )
    if gate.state == "awaiting" and gate.later:
        words.append(f"later until **{one_line(gate.later, 30)}**")
    words += [span(told, 200) for told in told_fields(gate.opened)]
    if gate.opened.quorum > 1 and gate.state == "awaiting":
        words.append(f"{len(gate.votes)} of {gate.opened.quorum} answers alike that are needed")
    if gate.opened.follows:
        words.append(f"follows gate {span(gate.opened.follows, 20)}")
    if (run := run_named(gate.opened)) is not None:
        words.append(" ".join(f"{name} {span(str(run[key]), 80)}" for name, key in RUN_WORDS if run[key]))
    return " · ".join(words)


def job_link(view: View) -> str:
    """Return a link to the job in which it was asked, by the run's number: it can lead nowhere but to a run here."""
    run = view.gate.opened.config.get("job_run")
    known = isinstance(run, int) and not isinstance(run, bool) and 0 < run < 10**15
    return f"[a job]({view.site}{view.customs.runs}{run})" if known and view.site else ""


def account(view: View, login: str) -> str:
    """Return an account of the forge as a link. Its name is in a code span, which notifies nobody."""
    name = span(f"@{login}", 60)
    nested = "/".join(view.site.split("/", 3)[:3])  # its groups are a part of the address
    server = nested if view.customs.nested else view.site.rsplit("/", 2)[0]
    return f"[{name}]({server}/{login})" if server and PLAIN.fullmatch(login) else name


def outcome_block(view: View, most: int) -> list[str]:
    """Return the answer, its votes, how the gate ended, and what came of it."""
    gate = view.gate
    said = [answer_words(view, gate.answer.answer, most)] if gate.answer is not None else []
    said += votes(view)
    if gate.closing is not None:
        by = (who_ended(gate.closing) or "").partition(" <")[0]
        said.append(
            (f"By {span(by, 60)}:\n\n" if by else "")
            + said_words(view.site, gate.closing.text, min(most, 4000))
        )
        said += talked(gate.closing.session, most)
    if gate.outcome is not None and gate.state in ("resumed", "failed"):
        made = [commit_link(view, oid) for oid in gate.outcome.commits[:20]]
        where = f" on {span(gate.outcome.branch, 100)}" if gate.outcome.branch else ""
        if made:
            why = f" ({span(gate.outcome.reason, 300)})" if gate.outcome.reason else ""
            said.append(f"What the agent made of it{where}: {', '.join(made)}{why}")
        elif gate.state == "failed":
            said.append(block(gate.outcome.reason, 500))
        said += loose_ends(view, gate.outcome, most)
    return said


def said_words(site: str, text: str, most: int) -> str:
    """Return somebody's words as a quote."""
    return quoted(prose(text, most, site) or "(nothing)")


def votes(view: View) -> list[str]:
    """Return who answered what, and where, for a gate that needs several answers; else nothing."""
    gate = view.gate
    if gate.opened.quorum < 2 and gate.opened.refusals < 2:
        return []
    shown_ones = gate.votes[:MOST_VOTES]
    lines = [f"- {vote_words(view, vote.answer)}" for vote in shown_ones]
    more = len(gate.votes) - len(shown_ones)
    return ["\n".join([*lines, *([f"- and {more} more"] if more else [])])] if lines else []


def vote_words(view: View, answer: Answer) -> str:
    words = "; ".join(value_words(answer.values.get(question.key)) for question in view.gate.opened.questions)
    who = span(answer.by.partition(" <")[0], 60)
    return f"{who} said {span(words, 120)}{where_said(view, answer)}, at {one_line(answer.at, 30)}"


def where_said(view: View, answer: Answer) -> str:
    """Return a link to the reply if it leads into this repository; else the surface through which the answer came."""
    place = answer.evidence.get("url")
    return f" ([the reply]({place}))" if is_ours(view.site, place) else f" by {span(answer.via, 20)}"


def retry_words(view: View) -> str:
    """Return how to try again, and how to end the gate. Who runs the workflow vouches for the answer it names."""
    gate, answer = view.gate.id, view.gate.answer
    ways = [
        f"to try again, in a clone: `git gate resume {gate}`",
        f"to end it: a comment that says `/stop {gate} WHY`, or, in a clone: `git gate stop {gate} --reason WHY`",
    ]
    if view.jobs and answer is not None:
        page = f"{view.site}/actions/workflows/{ANSWERS}"
        given = f"the gate `{gate}` and the commit {span(answer.commit, 64)}"
        ways[:1] = [
            f"**to try again**: [the workflow's page]({page}), its button **Run workflow**: leave the branch, give {given}",
            f"or, in a clone: `git gate resume {gate}`",
        ]
    return "\n".join(f"- {way}" for way in ways)


def loose_ends(view: View, came: Outcome, most: int) -> list[str]:
    """Return what a person has to look at, or can do, after the agent ended."""
    said = [retry_words(view)] if view.gate.state == "failed" else []
    if came.meant:
        said.append(f"Its commits are not on {span(came.meant, 100)}.")
    if came.left:
        room = max(3, most // 2000)
        more = f" and {len(came.left) - room} more" if len(came.left) > room else ""
        names = ", ".join(span(path, 120) for path in came.left[:room])
        said.append(f"Not committed, in {span(came.place, 200)}: {names}{more}")
    if came.denied:
        said.append(f"Refused to it:\n\n{block(chr(10).join(came.denied), min(most, 2000))}")
    return said + told_last(view.site, came, min(most, 2000))


def told_last(site: str, came: Outcome, most: int) -> list[str]:
    return [f"Its last words:\n\n{said_words(site, came.said, most)}"] if came.said else []


def outcome_note(view: View) -> ReplyNote | None:
    """Return a short note on what came of the answer, or None. Nobody is notified of an edited comment."""
    gate, came = view.gate, view.gate.outcome
    entry = next((one for one in reversed(gate.history) if one.event is came), None)
    if came is None or entry is None or gate.state not in ("resumed", "failed"):
        return None
    said = [f"Gate **{gate.id}**: {ending(view, came)}", asked_words(gate)]
    said += (
        [f"It is not tried again by itself, and its answer is kept:\n\n{retry_words(view)}"]
        if gate.state == "failed"
        else []
    )
    said += told_last(view.site, came, MOST_SAID)
    return ReplyNote(f"<!-- gitgate came={entry.commit} gate={gate.id} -->", "\n\n".join(said))


def asked_words(gate: Gate) -> str:
    """Return the question and its answer, each in a line."""
    asked = f"It had asked: {phrase(gate.opened.title, 100)}"
    if gate.answer is None:
        return asked
    answer = gate.answer.answer
    words = "; ".join(value_words(answer.values.get(question.key)) for question in gate.opened.questions)
    by = f"by {span(answer.by.partition(' <')[0], 60)}" if answer.by else "which nobody gave: it was declared"
    return f"{asked}\nThe answer: {span(words, 120)}, {by}"


def ending(view: View, came: Outcome) -> str:
    if view.gate.state == "failed":
        return f"⚠️ the agent failed{f': {span(came.reason, 300)}' if came.reason else '.'}"
    if not came.commits:
        return "✅ the agent went on and ended, without commits: nothing is to be reviewed."
    made = ", ".join(commit_link(view, oid) for oid in came.commits[:10])
    more = f" and {len(came.commits) - 10} more" if len(came.commits) > 10 else ""
    where = f" on {span(came.branch, 100)}" if came.branch else ""
    return f"✅ the agent went on and ended: {made}{more}{where}{compare_link(view, came)}"


def compare_link(view: View, came: Outcome) -> str:
    first, last = came.commits[0], came.commits[-1]
    whole = view.site and re.fullmatch(OID, first) and re.fullmatch(OID, last)
    page = f"{view.site}{view.customs.pages}/compare/{first}%5E...{last}"
    return f". **To review:** [compare]({page})" if whole else ""


def answer_words(view: View, answer: Answer, most: int) -> str:
    questions = view.gate.opened.questions
    lead = "{}: " if len(questions) > 1 else ""
    words = "\n".join(lead.format(q.key) + value_words(answer.values.get(q.key)) for q in questions)
    text = said_words(view.site, words + (f"\n\n{answer.note}" if answer.note else ""), min(most, 8000))
    after = "".join(f"\n\n{part}" for part in talked(answer.session, most))
    if not answer.by:
        return f"Nobody said this; it is what the question declared:\n\n{text}"
    link = where_said(view, answer)
    return (
        f"{span(answer.by.partition(' <')[0], 60)} said{link}, at {one_line(answer.at, 30)}:\n\n{text}{after}"
    )


def is_ours(site: str, place: object) -> bool:
    """Return whether an address in a record leads into this repository, and can be nothing else within a link."""
    if not isinstance(place, str) or not site:
        return False
    rest = place.removeprefix(f"{site}/")
    return place.startswith(f"{site}/") and re.fullmatch(r"[\w/#-]{1,200}", rest, re.ASCII) is not None


def commit_link(view: View, oid: str) -> str:
    """Return a link to a commit; a code span for what is no commit's id, which no record that was read has."""
    if not re.fullmatch(OID, oid):
        return span(oid, 40)
    return f"[`{oid[:10]}`]({view.site}{view.customs.pages}/commit/{oid})" if view.site else f"`{oid[:10]}`"


def question_block(view: View, question: Question, most: int) -> str:
    """Return the question as it was written, and each option with the reply that chooses it."""
    several = len(view.gate.opened.questions) > 1
    lead = f"**{span(question.key, 40)}** ({question.type})\n\n" if several else ""
    lines = [lead + prose(question.prompt, most, view.site)]
    room = max(3, most // 150)
    replies = own_replies(view)
    for place, option in enumerate(question.options[:room]):
        more = f": {phrase(option.description, min(most, 300), view.site)}" if option.description else ""
        reply = f" → {span(replies[place], 100)}" if place < len(replies) else ""
        lines.append(f"{place + 1}. **{phrase(option.label, 120)}**{more}{reply}")
    if len(question.options) > room:
        lines.append(f"\nand {len(question.options) - room} more options")
    if question.other:
        lines.append("\nor something else, in your own words")
    if details := type_of(question).details(question):
        lines.append("\n" + block(details, min(most, 4000), fold=False))
    if question.default is not None:
        lines.append(f"\ndefault: {span(value_words(question.default), 120)}")
    return lines[0] + "\n\n" + "\n".join(lines[1:]) if len(lines) > 1 else lines[0]


def plain_words(view: View) -> str:
    """Return which words without a command answer, where the policy allows them; else nothing."""
    questions = view.gate.opened.questions
    if not (view.plain and view.alone) or len(questions) > 1:
        return ""
    words = "`yes`, `lgtm` or `no`" if questions[0].kind == "approval" else "an option's name or number"
    known = questions[0].kind == "approval" or questions[0].options
    return f"A comment that is only {words} is one, too. " if known else ""


def own_replies(view: View) -> list[str]:
    """Return a reply for each option while replies count; else nothing."""
    if view.gate.state != "awaiting" or (view.whose or in_words(view.gate, (), {})).closed:
        return []
    return option_replies(view.gate, "" if view.alone else view.gate.id, view.gates)


SHORT = 600


def context_block(view: View, most: int) -> str:
    """Return the context, folded where it is long, or where the gate no longer waits."""
    text = view.gate.opened.context
    if not text.strip():
        return ""
    opened = view.gate.state == "awaiting" and len(text) <= SHORT
    return details("Context", prose(text, most, view.site), opened=opened)


def details(title: str, body: str, *, opened: bool = False) -> str:
    return f"<details{' open' if opened else ''}><summary>{title}</summary>\n\n{body}\n\n</details>"


def work_block(view: View, most: int) -> str:
    """Return the agent's work so far. Its title consists of our own numbers alone."""
    done = view.gate.opened.work
    if not done.changed:
        return ""
    files = "1 file" if done.files == 1 else f"{done.files} files"
    title = f"The work so far: {files} changed, +{done.insertions} −{done.deletions}"
    body = block(view.stat, min(most, 4000), fold=False) if view.stat.strip() else ""
    if view.diff.strip():
        body += "\n\n" + block(view.diff, most, kind="diff", fold=False)
    if not body:
        body = f"It stayed where the agent ran; `git gate diff {view.gate.id}` shows it where it is."
    left = [f"- left out: {span(path, 120)} ({span(reason, 60)})" for path, reason in done.left_out[:20]]
    return details(title, "\n\n".join([body, "\n".join(left)]) if left else body)


# how to reply


def how(view: View) -> str:
    gate = view.gate
    whose = view.whose or in_words(gate, (), {})
    if whose.closed:
        return f"{join_words(gate)}{whose.closed}"
    named, beside = "" if view.alone else gate.id, own_replies(view)
    known = examples(gate, named, view.gates, view.customs.taken)
    above = beside and len(beside) == len(gate.opened.questions[0].options)
    said_twice = above and gate.opened.questions[0].type == "choice"
    ways = "\n".join(w for w in known if w not in beside and not (said_twice and w.startswith("/choose ")))
    fence = "`" * max(3, longest_run(ways) + 1)
    more = "" if view.alone else " Several gates wait here, so the reply names this one."
    if view.unheard:
        more += " GitHub starts no job for a comment on a commit, so a reply here is found by the next sweep."
    return join_words(gate) + (
        f"**Reply** with a new comment that begins with {'a command above, or with ' if above else ''}one of these; "
        f"it counts from {whose.words}.{more}\n\n"
        f"{fence}text\n{ways}\n{fence}\n\n"
        f"{plain_words(view)}Write a new comment: an edited one, a reaction and a ticked box are no answers."
    )


# The questions of a pull request as the page of a check run, beside its status: pure.
#
# The page is the comment's questions and the work, in the same inert Markdown. Its notes stand on the
# lines of the head that the work changes. It has no buttons: a check that a job made starts no workflow,
# so that answers stand in the conversation.


MOST_TITLE = 120
MOST_SHOWN = 5  # so many gates with their questions
MOST_NOTES = 50  # that one request takes
HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.ASCII)
DECIDED = frozenset(("success", "failure"))


def page_of(views: Sequence[View], state: str, words: str, url: str, head: str) -> CheckPage:
    """Return the check page of a head: the conclusion from its status, and the questions of the gates that wait."""
    if not views:
        return CheckPage(state if state in DECIDED else "", one_line(words, MOST_TITLE), span(words, 300), "")
    shown = views[:MOST_SHOWN]
    more = f"\n\nand {len(views) - len(shown)} more gates" if len(views) > len(shown) else ""
    asks = views[0].gate.opened.title if len(views) == 1 else words
    return CheckPage(
        "action_required",
        one_line(asks, MOST_TITLE),
        f"**Answer in [the conversation]({url}).** Nothing on this page is an answer.\n\n"
        + fitted(shown, question_part, MOST - 500)
        + more,
        fitted(shown, work_block, MOST - 500),
        tuple(note for view in shown for note in notes(view, head))[:MOST_NOTES],
    )


def fitted(views: Sequence[View], part: Callable[[View, int], str], most: int) -> str:
    """Return one part of each view, shortened until all of them fit."""
    text = ""
    for limit in LIMITS:
        text = "\n\n".join(said for view in views if (said := part(view, limit)))
        if size(text) <= most:
            return text
    return text[: most // 2]


def question_part(view: View, most: int) -> str:
    gate = view.gate
    head = f"gate **{gate.id}** · asked by {span(gate.opened.asked.agent, 80)}"
    return "\n\n".join([head, *(question_block(view, one, most) for one in gate.opened.questions)])


def notes(view: View, head: str) -> Iterator[CheckNote]:
    """Yield notes at the lines that the work changes, as numbered in the head, if the work began at that head."""
    gate = view.gate
    if gate.opened.work.base != head:
        return
    words = f"An agent changed this, and asks (gate {gate.id}): {one_line(gate.opened.title, 200)}"
    for path, first, last in touched(view.diff):
        yield CheckNote(path, first, last, words)


def touched(diff: str) -> Iterator[tuple[str, int, int]]:
    """Yield the ranges of lines that a diff changes, numbered as before it: those removed, or the one after which
    others are added. Each hunk says how many lines it has, so that no line's content is taken for a header. New files
    have none.
    """
    path, old, left, came = "", 0, 0, 0
    first = last = 0
    for line in diff.split("\n"):
        if not left and not came:
            if line.startswith("--- "):
                path = path_in(line)
            elif found := HUNK.match(line):
                old, left, came = int(found[1]), int(found[2] or 1), int(found[3] or 1)
                old += not left  # nothing goes: the number is that of the line before
            continue
        if line.startswith("\\"):
            continue
        goes, comes = not line.startswith("+"), not line.startswith("-")
        if goes and comes:
            if first:
                yield path, first, last
            first = 0
        elif path:
            place = old if goes else max(1, old - 1)
            first, last = first or place, max(last if first else 0, place)
        old, left, came = old + goes, left - goes, came - comes
        if not left and not came and first:
            yield path, first, last
            first = 0


def path_in(line: str) -> str:
    """Return the path in a diff's header; empty for a new file, and for a name that has to be quoted."""
    path = line.removeprefix("--- ").rstrip("\t")
    return path.removeprefix("a/") if path.startswith("a/") else ""
