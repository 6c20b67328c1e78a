"""Calls: an agent's questions as a gate's, and a gate's answers as the call's."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.document import codec
from gitgate.errors import Usage
from gitgate.questions import Given, calls
from gitgate.questions.answers import read_answer
from gitgate.questions.file import parse_questions, plain_question


def ask(*questions: dict[str, object]) -> dict[str, object]:
    return {"questions": list(questions)}


def one(text: str = "Which?", *labels: str, **more: object) -> dict[str, object]:
    return {
        "question": text,
        "header": "Head",
        "options": [{"label": label, "description": "d"} for label in labels],
        **more,
    }


def test_one_question_is_called_answer_and_several_by_their_headers() -> None:
    """Keys are short, distinct, and fit to be typed."""
    assert [q.key for q in calls.questions_of(ask(one("Which?", "A", "B")))] == ["answer"]
    several = ask(
        one("1?", header="Data base!"),
        one("2?", header="Data base"),
        one("3?", header="日本"),
        one("4?", header="Q2"),
    )
    assert [q.key for q in calls.questions_of(several)] == ["data-base", "q2", "q3", "q4"]


def test_types() -> None:
    """Several labels, one label, or, without options, words."""
    several = ask(one("1?", "A", "B", multiSelect=True), one("2?", "A", "B"), one("3?"))
    assert [q.type for q in calls.questions_of(several)] == ["choices", "choice", "text"]


def test_labels_that_differ_by_case_alone_are_two() -> None:
    """Neither is lost."""
    (question,) = calls.questions_of(ask(one("Which?", "go", "Go", "GO")))
    assert question.labels == ("go", "Go (2)", "GO (3)")


@pytest.mark.parametrize(
    "wrong",
    [{}, {"questions": []}, {"questions": "x"}, {"questions": [3]}, {"questions": [{}]}, ask(one(" ")), ask(one("x", "")), ask(one("x", options=3)), ask(*[one()] * 21)],
)  # fmt: skip
def test_a_call_of_another_shape_is_refused(wrong: dict[str, object]) -> None:
    """With the shape that was expected."""
    with pytest.raises(Usage) as told:
        calls.questions_of(wrong)
    assert "multiSelect" in told.value.hint


def test_answers_go_back_by_the_text_of_their_question() -> None:
    """Several labels with commas between; a label that has one in quotes; words of one's own as they are."""
    asked = ask(
        one("A?", "x", "y"), one("B?", "p, q", "r", multiSelect=True), one("C?", "s", "t", multiSelect=True)
    )
    questions = calls.questions_of(asked)
    keys = [question.key for question in questions]
    values, _ = read_answer(
        questions,
        Given(values={keys[0]: "other:mine, all mine", keys[1]: ["p, q", "r"], keys[2]: ["s", "t"]}),
    )
    updated = calls.updated_input(asked, questions, values)
    assert updated["questions"] == asked["questions"]
    assert updated["answers"] == {"A?": "mine, all mine", "B?": '"p, q", r', "C?": "s, t"}


def test_a_digest_is_of_exactly_this_call() -> None:
    """The order of arguments does not matter; their values and the tool do."""
    digest = calls.digest_of_call("Bash", {"a": 1, "b": "x"})
    assert digest == calls.digest_of_call("Bash", {"b": "x", "a": 1})
    assert (
        len(
            {
                digest,
                calls.digest_of_call("Bash", {"a": 1, "b": "x "}),
                calls.digest_of_call("Sh", {"a": 1, "b": "x"}),
            }
        )
        == 3
    )


JSON: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
OPTION = st.fixed_dictionaries(
    {"label": st.text(max_size=8) | JSON}, optional={"description": JSON, "preview": JSON}
)
QUESTION = st.fixed_dictionaries(
    {"question": st.text(max_size=30) | JSON},
    optional={
        "header": st.text(max_size=12) | JSON,
        "multiSelect": JSON,
        "options": st.lists(OPTION, max_size=5) | JSON,
    },
)


@given(
    st.fixed_dictionaries({"questions": st.lists(QUESTION, max_size=5) | JSON}, optional={"answers": JSON})
    | st.dictionaries(st.text(max_size=5), JSON)
)
def test_any_call_is_asked_or_refused(value: dict[str, object]) -> None:
    """What is asked can be written down and read again; what is refused says why; nothing else happens."""
    calls.digest_of_call("X", value)
    calls.summary("X", value)
    assert isinstance(calls.exact("X", value).encode(), bytes)
    assert isinstance(calls.previews(value), str)
    try:
        questions = calls.questions_of(value)
    except Usage:
        return
    written = codec.dump_document({"questions": [plain_question(question) for question in questions]})
    assert tuple(parse_questions(codec.parse_document(written, "x").need("questions"))) == questions
    updated = calls.updated_input(value, questions, {question.key: "yes" for question in questions})
    json.dumps(updated)


@pytest.mark.parametrize(
    ("path", "root", "found"),
    [
        ("/repo/a", "/repo", "a"), ("/repo", "/repo", "."), ("/repo/b/../a", "/repo", "a"), ("/repo//a", "/repo", "a"),
        ("/repo2/a", "/repo", None), ("/repo/../repo2/a", "/repo", None), ("/a", "/repo", None), ("/a/b", "/", "a/b"),
        ("a", "/repo", None), ("/repo.git/a", "/repo", None),
    ],
)  # fmt: skip
def test_what_lies_below_a_folder(path: str, root: str, found: str | None) -> None:
    """By whole names, once every detour is taken out."""
    assert calls.below(path, root) == found


NAMING = [
    "rm -rf /srv/ada/repo", "cat '/srv/ada/repo/x'", "cd /srv/ada/repo; ls", "X=/srv/ada/repo make", "cd ~/repo", "ls $HOME/repo/x",
    "ls ${HOME}/repo", 'ls "~/repo"', "cat ../x", "cat a/../../x", "ls ..", "cat /srv/ada/repo2/../repo/x", "file:///srv/ada/repo/x",
    "cat /srv/ada/repo.", "-I/srv/ada/repo",
]  # fmt: skip
NOT_NAMING = [
    "ls", "cat a..b", "cat /srv/ada/repo2/x", "cat /srv/ada/repo-old", "cat /srv/ada/repo.git/x", "cat /other/srv/ada/repo", "cat a/../x",
    "cat ~/other", "echo ...", "cd sub && cat ./x", "cat ./srv/ada/repo",
]  # fmt: skip


@pytest.mark.parametrize("text", NAMING)
def test_a_text_that_names_a_folder(text: str) -> None:
    """By its name, through the home, or by climbing out of it."""
    assert calls.names_folder(text, ["/srv/ada/repo"], ".", "/srv/ada")


@pytest.mark.parametrize("text", NOT_NAMING)
def test_a_text_that_only_looks_alike(text: str) -> None:
    """Names are whole, and what stays inside is about wherever the agent is."""
    assert not calls.names_folder(text, ["/srv/ada/repo"], ".", "/srv/ada")


def test_a_text_is_read_from_where_the_agent_is() -> None:
    """One level up from a folder of the repository is still in it."""
    assert not calls.names_folder("cat ../x", ["/srv/ada/repo"], "sub")
    assert calls.names_folder("cat ../../x", ["/srv/ada/repo"], "sub")


@pytest.mark.parametrize(
    "said",
    [
        {"files": {"file_path": "../x"}}, {"files": {"file_path": "/etc/x"}}, {"files": {"file_path": ".git/hooks/x"}}, {"files": "x"},
        {"files": {"file_path": 1}}, {"root": 1}, {"cwd": None}, {"files": {"file_path": "a/../../x"}}, {"files": {"file_path": ".GIT/config"}},
    ],
)  # fmt: skip
def test_a_place_that_a_record_makes_up_is_none(said: dict[str, object]) -> None:
    """Nothing leads out of the new place, or into git's own folder, whoever wrote it."""
    plain = {"root": "/r", "cwd": ".", "files": {}, "named": False, "digest": "0"}
    gate = Mock()
    gate.opened.config = {"deferred": {"placed": {**plain, **said}}}
    assert calls.placed_of(gate) is None
    gate.opened.config = {"deferred": {"placed": plain}}
    assert calls.placed_of(gate) == calls.Placed("/r", ".", {}, False, "0")
