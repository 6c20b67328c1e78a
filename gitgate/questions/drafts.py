"""Questions: a question on its way to becoming a gate, from flags, from a file or from another system's words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..document import Field, dataclass, field_of, near, nearest, replace, texts
from ..errors import BadAnswer, BadDocument, Usage
from ..model.gate import NAMES, OF_OUTCOME, Option, Question, Talk, Value, aliased_schema, parse_talk
from . import article
from .file import ASKED, KEY, GateField, parse_questions, unfit
from .types import TYPES, aliases, read_value, type_name

# Words that other systems use for our fields, in files that ask.
FIELD_ALIASES = {
    "prompt": ("question", "content", "message"),
    "context": ("questionContext", "question_context"),
    "title": ("summary",),
}
# What a question file may say. A field that is none of these is a mistake, and refused: a misspelt one would be lost.
OF_OPTION = ("label", "description")
OF_CONVERSATION = ("talk", "session_config", "sessionConfig")
OF_QUESTION = ("key", "prompt", "type", "options", "other", "schema", "default", *OF_CONVERSATION)
OF_GATE = (*(name for row in ASKED for name in (row.word, *row.also)), "attach", "config")
EXAMPLE = "git gate help question-file"
SINGLE = "a choice of one option is none"
# What other systems' files say of themselves, and we find out on our own.
OF_OTHERS = ("hitl", "id", "agent_id", "timestamp", "answered", "working_dir", "status", "created_at")


@dataclass(frozen=True)
class Draft:
    """Draft of a gate, before it is opened. None means not given, so that settings may decide."""

    questions: tuple[Question, ...]
    title: str = ""
    context: str = ""
    priority: str | None = None
    confidence: float | None = None
    timeout: int | None = None
    on_timeout: str | None = None
    to: tuple[str, ...] = ()
    quorum: int = 1
    key: str | None = None
    agent: str | None = None
    session: str | None = None
    attach: tuple[str, ...] = ()
    config: Mapping[str, object] | None = None
    key_for: int | None = None
    notify: tuple[str, ...] = ()


def question(
    prompt: str,
    *,
    key: str = "answer",
    type: str | None = None,
    options: Sequence[Option] = (),
    default: object = None,
    other: bool = True,
    schema: Mapping[str, object] | None = None,
    talk: Talk | None = None,
) -> Question:
    """Return one question, made from flags or keyword arguments."""
    if not prompt.strip():
        raise Usage("a question needs words", hint='git gate ask "Which database?" -o Postgres -o SQLite')
    name = "choice" if type is None and options else "form" if type is None and schema else type or "text"
    kind = type_name(name)
    if kind is None:
        raise Usage(
            f"{name!r} is not a type of question; expected one of {', '.join(TYPES)}{near(name, (*TYPES, *aliases()))}",
            hint=f"--type {nearest(name, tuple(TYPES)) or 'choice'}   ({other_words()})",
        )
    if kind == "session":
        check_talk(prompt, options, schema, talk)
    elif talk is not None:
        raise Usage(f"a {kind} question is not a conversation", hint="use --type session")
    else:
        check_options(kind, options, schema)
    if not other and not TYPES[kind].has_options:
        raise Usage(
            f"--no-other is for questions with options; this one is of type {kind}",
            hint="add options: -o LABEL -o LABEL, or leave --no-other out",
        )
    check_labels(options)
    if kind == "choice" and len(options) == 1:
        raise Usage(SINGLE, hint="add another: -o LABEL; or ask with --type approval, or text")
    plain = Question(
        key=key,
        prompt=prompt.strip(),
        type=kind,
        options=tuple(replace(option, label=option.label.strip()) for option in options),
        other=other and TYPES[kind].has_options,
        schema=schema,
        talk=talk,
    )
    return plain if default is None else replace(plain, default=default_of(plain, default))


def check_options(kind: str, options: Sequence[Option], schema: Mapping[str, object] | None) -> None:
    choosing, filling = TYPES[kind].has_options, TYPES[kind].has_schema
    if choosing and not options:
        raise Usage(f"a {kind} question needs options", hint="add them: -o LABEL -o 'LABEL=what it means'")
    if options and not choosing:
        raise Usage(
            f"{article(kind)} question has no options", hint="use --type choice, or leave the options out"
        )
    if filling and schema is None:
        raise Usage(f"{article(kind)} question needs a schema", hint="add it: --schema FILE")
    if schema is not None and not filling:
        raise Usage(f"a {kind} question has no schema", hint="use --type form")


def check_talk(
    prompt: str, options: Sequence[Option], schema: Mapping[str, object] | None, talk: Talk | None
) -> None:
    wrong = unfit(Question("", prompt, "session", tuple(options), schema=schema, talk=talk))
    if wrong:
        hint = "selection: -o LABEL -o LABEL; structured: --schema FILE; approval and freeform: neither"
        raise Usage(wrong, hint=f"--outcome {hint}")


def check_labels(options: Sequence[Option]) -> None:
    folded = [option.label.strip().casefold() for option in options]
    for option in options:
        label = option.label.strip()
        if not label:
            raise Usage("an option needs a label", hint="-o LABEL -o 'LABEL=what it means'")
        if folded.count(label.casefold()) > 1:
            raise Usage(f"the option {label!r} is there twice", hint="-o LABEL once for each option")


def default_of(plain: Question, given: object) -> Value:
    try:
        return read_value(plain, given)
    except BadAnswer as wrong:
        words = f"the default does not fit the question: {wrong.words_without(plain.key)}"
        raise Usage(words, hint="a default is an answer to the question: --default LABEL") from None


def other_words() -> str:
    return "also understood: " + ", ".join(f"{word} (= {ours})" for word, ours in aliases().items())


def option(text: str) -> Option:
    """Return the option that `LABEL` or `LABEL=TEXT` means; the first `=` splits, and a backslash before `=` makes
    it literal.
    """
    label, mark, description = re.sub(r"\\=", "\0", text).partition("=")
    return Option(label.replace("\0", "=").strip(), description.replace("\0", "=").strip() if mark else "")


def option_list(text: str) -> tuple[Option, ...]:
    """Return the options of `A,B,C`."""
    return tuple(Option(part.strip()) for part in text.split(",") if part.strip())


def read_draft(root: Field) -> Draft:
    """Return the draft in a question file: our own form, or one question written flat, in our words or in other
    systems'.
    """
    listed = root.get("questions")
    refuse_unknown_fields(root, listed)
    questions = tuple(parse_questions(listed)) if listed else (read_flat(root),)
    for question, item in zip(questions, listed.items() if listed else (root,), strict=True):
        refuse_pointless(question, item)
    return Draft(
        questions=questions,
        attach=attached(root),
        config=read_config(root),
        **{row.name: value for row in ASKED if (value := said_of(root, row)) is not None},
    )


# What a hook or a job of ours notes of a question: which call waits for its answer, which request it is, where it is shown.
NOTED = ("deferred", "need", "pull_request")


def read_config(root: Field) -> dict[str, object] | None:
    """Return the data of their own that a file's author keeps with the question. Refuse the names that git gate
    itself writes: they decide how an answer is acted on, and only our own hooks may set them.
    """
    config = root.get("config")
    for name, field in config.mapping().items() if config else ():
        if str(name).strip().casefold() in NOTED:
            field.fail(
                "expected a name of your own; this one is noted by git gate itself, and decides how an answer is acted on",
                hint="leave it out, or call it something else",
            )
    return {str(k): f.plain() for k, f in config.mapping().items()} if config else None


def said_of(root: Field, row: GateField) -> Any:
    """Return the value that the file gives for a field of the gate, under any of the field's names; an empty text
    counts as missing.
    """
    for name in (row.word, *row.also):
        found = find_field(root, name)
        value = None if found is None or found.value is None else row.read(found)
        if value != "" and value is not None:
            return value
    return None


def refuse_pointless(question: Question, item: Field) -> None:
    """Refuse fields of a question that have no effect: a choice of one option, or `other: false` where there are no
    options.
    """
    if question.type == "choice" and len(question.options) == 1:
        item.need("options").fail(SINGLE, hint="add another, or ask an approval or text")
    other = item.get("other")
    if other is not None and other.value is False and not TYPES[question.type].has_options:
        other.fail(
            f"it is for questions with options; this one is of type {question.type}",
            hint="add options: [A, B], or leave it out",
        )


def refuse_unknown_fields(root: Field, listed: Field | None) -> None:
    """Refuse the first field that no question file has; the error names the field that was probably meant."""
    version = root.get("hitl")
    if version is not None and (type(version.value) is not int or version.value != 1):
        version.fail("this gitgate reads version 1 of the format; upgrade it to ask with this file")
    aliases = tuple(word for words in FIELD_ALIASES.values() for word in words)
    expect_names(root, (*OF_GATE, *aliases, *OF_OTHERS, *(("questions",) if listed else OF_QUESTION)))
    for question in (root,) if listed is None else listed.items():
        if listed is not None:
            expect_names(question, OF_QUESTION)
        refuse_unknown_terms(question)
        options = question.get("options")
        for one in options.items() if options is not None and isinstance(options.value, list) else ():
            if isinstance(one.value, dict):
                expect_names(one, OF_OPTION)


def refuse_unknown_terms(question: Field) -> None:
    """Refuse unknown fields in the terms of a conversation, and in its `outcomeSchema`, as other systems write the
    outcome.
    """
    for name in OF_CONVERSATION:
        terms = question.get(name)
        if terms is None or not isinstance(terms.value, dict):
            continue
        expect_names(terms, NAMES)
        outcome = aliased_schema(terms)
        if outcome is not None:
            expect_names(outcome, OF_OUTCOME)


def expect_names(root: Field, names: Sequence[str]) -> None:
    """Refuse the first key of a mapping that is not one of `names`."""
    for name, field in root.mapping().items():
        if name not in names:
            meant = nearest(name, names)
            ours = [one for one in names if one not in OF_OTHERS]
            field.fail(
                f"there is no such field; did you mean {meant}?" if meant else "there is no such field",
                hint=f"there are {', '.join(ours)}; an example: {EXAMPLE}",
            )


def read_flat(root: Field) -> Question:
    prompt = find_field(root, "prompt")
    if prompt is None:
        root.fail("expected a prompt, or a list of questions")
    key = root.get("key")
    if key is not None and not re.fullmatch(KEY, key.text(most=64)):
        key.fail("expected letters, digits, dot, dash or underscore")
    value = dict(root.mapping())
    value["key"] = Field(key.text() if key else "answer", root.source, root.path, root.line)
    value["prompt"] = prompt
    (only,) = parse_questions(
        Field([Field(value, root.source, root.path, root.line)], root.source, root.path, root.line)
    )
    return only


def attached(root: Field) -> tuple[str, ...]:
    """Return the files to attach. Refuse a path that leads out of the tree here, where its line is known."""
    found = root.get("attach")
    for item in () if found is None else found.items():
        if ".." in item.text(most=4096).split("/"):
            item.refuse("a file below the top of the working tree")
    return texts(root, "attach", 4096)


def find_field(root: Field, name: str) -> Field | None:
    found = [f for word in (name, *FIELD_ALIASES.get(name, ())) if (f := root.get(word)) is not None]
    for other in found[1:]:
        if other.plain() != found[0].plain():
            first, second = found[0].name.lstrip("."), other.name.lstrip(".")
            other.fail(
                f"{first} is another word for it, and says otherwise", hint=f"leave out {first} or {second}"
            )
    return found[0] if found else None


MOST_CONTEXT = 256 * 1024  # bytes of JSON: a record is read by everybody who looks at the gate
# What only an agent could make use of.
OF_AN_AGENT = ("system", "model", "cwd", "mcp", "transcript", "save_every", "resume")


def talk_of(
    given: Mapping[str, object], flag: Callable[[str], str], *, options: bool = False, schema: bool = False
) -> Talk:
    """Return the conversation described by `given`, keyed by the names of Talk's fields; `flag` gives each its name
    for errors.

    Where no outcome is named, options make it a selection and a schema makes it structured.
    """
    said = {name: value for name, value in given.items() if value is not None and value is not False}
    if said.get("checkpoint"):
        refuse_beside_checkpoint(said, flag)
    if "outcome" not in said and not said.get("checkpoint"):
        said["outcome"] = "selection" if options else "structured" if schema else "freeform"
    fields = {name: field_of(value, flag(name)) for name, value in said.items()}
    return parse_talk(Field(fields, flag("type")))


def refuse_beside_checkpoint(said: Mapping[str, object], flag: Callable[[str], str]) -> None:
    beside = [flag(name) for name in OF_AN_AGENT if name in said]
    if beside:
        raise Usage(
            f"{beside[0]} is for an agent, and a checkpoint has none",
            hint=f"leave out {flag('checkpoint')}, or {' and '.join(beside)}",
        )
    if said.get("outcome") not in (None, "approval"):
        raise Usage(
            f"a checkpoint is an approval; found {flag('outcome')} {said['outcome']}",
            hint=f"leave out {flag('outcome')}",
        )


def refuse_elsewhere(type: str | None, said: Mapping[str, object], flag: Callable[[str], str]) -> None:
    """Refuse terms of a conversation for a question that is not decided in a session."""
    first = next((name for name, value in said.items() if value is not None and value is not False), None)
    if first is not None and (type is None or type_name(type) != "session"):
        raise Usage(
            f"{flag(first)} is for a question that is decided in a session",
            hint=f"add {flag('type')}, or leave out {flag(first)}",
        )


def parse_json(data: bytes | str, source: str) -> object:
    """Return the value of JSON written by hand; an error names line and column."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        found: object = json.loads(text, parse_constant=refuse_constant)
        return found
    except json.JSONDecodeError as wrong:
        words = f"column {wrong.colno}: expected JSON; {wrong.msg[:1].lower()}{wrong.msg[1:]}"
        raise BadDocument(source, wrong.lineno, "", words) from None
    except UnicodeDecodeError as wrong:
        line = wrong.object.count(b"\n", 0, wrong.start) + 1
        raise BadDocument(source, line, "", "expected UTF-8 text") from None
    except (ValueError, RecursionError) as wrong:
        raise BadDocument(source, 0, "", f"expected JSON; {wrong}") from None


def as_json(value: object, source: str) -> object:
    """Return a Python value as JSON has it; refuse what JSON lacks rather than turn it into text."""
    try:
        found: object = json.loads(json.dumps(value, allow_nan=False))
        return found
    except (TypeError, ValueError, RecursionError) as wrong:
        raise BadDocument(source, 0, "", f"expected values that JSON has; {wrong}") from None


def refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def check_context(question: Question) -> None:
    """Refuse a conversation's context that is too large: a record holds what is needed to decide, not the evidence
    itself.
    """
    talk = question.talk
    if talk is None or talk.context is None:
        return
    size = len(json.dumps(talk.context, ensure_ascii=False).encode("utf-8", "replace"))
    if size > MOST_CONTEXT:
        raise Usage(
            f"the session's context: expected at most {MOST_CONTEXT:,} bytes; found {size:,}",
            hint="attach what is large: --attach FILE",
        )
