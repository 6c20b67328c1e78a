"""Service: a conversation that a question asks for, held against the repository before anything is written."""

from __future__ import annotations

from dataclasses import replace

from ..core.drafts import Draft
from ..core.model import Question
from ..core.talkdrafts import check_context
from ..core.talks import Talk
from ..errors import Usage
from .desk import Desk


def settled(desk: Desk, draft: Draft) -> Draft:
    """The same draft; an earlier gate whose conversation is to go on is named by its whole id."""
    return replace(draft, questions=tuple(settled_question(desk, question) for question in draft.questions))


def settled_question(desk: Desk, question: Question) -> Question:
    if question.talk is None:
        return question
    check_context(question)
    check_folder(desk, question.talk)
    check_servers(desk, question.talk)
    if not question.talk.resume:
        return question
    from .reading import find_gate

    earlier = find_gate(desk, question.talk.resume).gate.id
    return replace(question, talk=replace(question.talk, resume=earlier))


def check_servers(desk: Desk, talk: Talk) -> None:
    """What Git once has is hard to take back: tools get their keys from the machine where the session takes place."""
    if talk.mcp is None:
        return
    import json

    from ..core.secrets import redact, secret_values

    text = json.dumps(talk.mcp, ensure_ascii=False)
    if redact(text, secret_values(desk.settings.env)) != text:
        raise Usage(
            "the MCP configuration holds what looks like a secret, and it would be recorded in Git",
            hint='name a variable of the machine instead: "env": {"API_KEY": "${API_KEY}"}',
        )


def check_folder(desk: Desk, talk: Talk) -> None:
    if talk.cwd and desk.repo.top is not None and not (desk.repo.top / talk.cwd).is_dir():
        raise Usage(
            f"the session is to begin in {talk.cwd}, and there is no such folder in {desk.repo.top}",
            hint="name a folder from the top of the working tree: --cwd services/api",
        )
