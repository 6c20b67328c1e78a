"""The house: where git completes a name it is given an id. Held on the text of the code here, and on each call by `refuse_names`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gitgate.errors import GitFailed
from gitgate.store.git import COMPLETING, Git, refuse_names

TOP = Path(__file__).parents[1]
MODULES = sorted((TOP / "gitgate").rglob("*.py"))
TALKS = ("fetch", "push")
# What a variable is called that holds the name of a ref, and no id.
CALLED = {"ref", "branch", "refname", "full_name", "name_of_ref"}
# By file and function, why git may complete what it is given there.
REVIEWED = {
    ("audit/auditing.py", "past_of"): "`reflog exists` was asked of this very ref first",
    ("store/git/refs.py", "revision"): "a person's own words",
}


@cache
def constants() -> frozenset[str]:
    """Names of the package that stand for refs, or for the beginning of their names."""
    found = set()
    for module in MODULES:
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            for target, value in pairs(node):
                if isinstance(target, ast.Name) and is_text(value, ("refs/", "HEAD")):
                    found.add(target.id)
    return frozenset(found)


def pairs(node: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what, one by one where it gives several."""
    if not isinstance(node, ast.Assign):
        return []
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(one, value) for one in node.targets]


def is_text(node: ast.expr, starts: tuple[str, ...]) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(starts)


def commands(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef, str, list[ast.expr], ast.expr]]:
    """Each list of words that begins with such a subcommand: the function, the subcommand, what follows, and where."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            words = (
                node.args
                if isinstance(node, ast.Call)
                else node.elts
                if isinstance(node, ast.List | ast.Tuple)
                else []
            )
            texts = [word.value if isinstance(word, ast.Constant) else None for word in words]
            while texts[:1] == ["-c"]:
                texts, words = texts[2:], words[2:]
            # A tuple of other things may begin with such a word: git's have options.
            options = isinstance(node, ast.Call) or any(str(text).startswith("-") for text in texts)
            if texts and texts[0] in COMPLETING and options and isinstance(node, ast.expr):
                yield function, str(texts[0]), before_paths(str(texts[0]), words[1:]), node


def before_paths(verb: str, words: list[ast.expr]) -> list[ast.expr]:
    ends = [at for at, word in enumerate(words) if isinstance(word, ast.Constant) and word.value == "--"]
    return words[: ends[0]] if ends and verb not in (*TALKS, "worktree") else words


def is_name(word: ast.expr, function: ast.FunctionDef | None) -> bool:
    """Whether it stands for the name of a ref: as far as one function tells."""
    if isinstance(word, ast.Starred):
        return is_name(word.value, function)
    if isinstance(word, ast.Tuple | ast.List):
        return any(is_name(one, function) for one in word.elts)
    if isinstance(word, ast.IfExp):
        return is_name(word.body, function) or is_name(word.orelse, function)
    if isinstance(word, ast.GeneratorExp | ast.ListComp):
        return is_name(word.elt, function)
    if isinstance(word, ast.BinOp):
        return is_name(word.left, function)
    if isinstance(word, ast.JoinedStr):
        first = word.values[0] if word.values else word
        return is_name(first.value if isinstance(first, ast.FormattedValue) else first, function)
    if isinstance(word, ast.Attribute):
        return word.attr in CALLED
    if isinstance(word, ast.Name):
        if word.id in CALLED or word.id in constants():
            return True
        given = [
            node.value
            for node in ast.walk(function or ast.Module([], []))
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == word.id for target in node.targets)
        ]
        return any(is_name(value, None) for value in given if not isinstance(value, ast.Name | ast.Call))
    return is_text(word, ("refs/", "^refs/", "+refs/", "HEAD", "@{", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD"))


def completed(text: str, file: str = "") -> list[str]:
    """Where the code gives git a name that it would complete."""
    return [
        f"{file}:{where.lineno}: git {verb} is given {ast.unparse(word)}"
        for function, verb, words, where in commands(ast.parse(text))
        if (file, function.name) not in REVIEWED
        for word in words
        if is_name(word, function) and not (verb in TALKS and "*" in ast.unparse(word))
    ]


def test_git_is_given_ids_where_it_completes_names() -> None:
    """Whoever may push a tag would choose what a missing ref stands for."""
    found = [
        one
        for module in MODULES
        for one in completed(module.read_text(encoding="utf-8"), str(module.relative_to(TOP / "gitgate")))
    ]
    assert found == []


def test_reviewed_places_are_there() -> None:
    """A list of what may be is short, and true."""
    for file, function in REVIEWED:
        tree = ast.parse((TOP / "gitgate" / file).read_text(encoding="utf-8"))
        assert any(isinstance(node, ast.FunctionDef) and node.name == function for node in ast.walk(tree))


@pytest.mark.parametrize(
    "line",
    [
        'git.run("rev-parse", "--verify", "HEAD")',
        'git.ok("rev-parse", "-q", "--verify", f"refs/heads/{x}")',
        'git.out("cat-file", "-e", ref)',
        'git.text("-c", "a=b", "log", OPEN + x)',
        'git.text("log", f"{OPEN}{x}^{{commit}}")',
        'git.run("worktree", "add", "--", place, "HEAD")',
        'converse(repo, there, (), ["fetch", "--", name, f"+refs/heads/{x}:{y}"])',
        'asked = ("merge-base", "--is-ancestor", self.ref, x)\n    git.run(*asked)',
        'full = f"refs/tags/{x}"\n    git.run("read-tree", full)',
        'git.run("bundle", "create", file, *(ref for ref in refs))',
        'git.begin("rev-list", x, *([HEAD] if x else []))',
        'git.out("diff", x, branch, "--", path)',
    ],
)
def test_a_completed_name_is_seen(line: str) -> None:
    """However it is written."""
    assert completed(f"def f():\n    {line}\n")


@pytest.mark.parametrize(
    "line",
    [
        'git.run("update-ref", "HEAD", new, old)',
        'git.run("show-ref", "--verify", "--hash", "--", ref)',
        'git.run("symbolic-ref", "-q", "HEAD")',
        'git.out("ls-tree", "-r", commit, "--", "refs/x", "HEAD")',
        'git.out("cat-file", "-e", f"{commit}^{{commit}}")',
        'converse(repo, there, (), ["fetch", "--", name, f"+refs/heads/{x}*:{y}*"])',
        'git.text("for-each-ref", form, "refs/heads")',
    ],
)
def test_what_is_exact_is_left_alone(line: str) -> None:
    """Ids, and subcommands that complete nothing."""
    assert completed(f"def f():\n    {line}\n") == []


ID = "1" * 40


@pytest.mark.parametrize(
    "args",
    [
        ("rev-parse", "--verify", "HEAD"),
        ("rev-parse", "HEAD^{commit}"),
        ("rev-parse", "-q", "--verify", "refs/heads/main"),
        ("rev-parse", "refs/tags/x"),
        ("cat-file", "-e", "refs/heads/main"),
        ("rev-parse", "@{0}"),
        ("rev-parse", "@"),
        ("-c", "a=b", "log", "refs/heads/main"),
        ("--git-dir=x", "log", "refs/heads/main"),
        ("rev-list", ID, "^refs/heads/main"),
        ("worktree", "add", "--", "/place", "refs/heads/main"),
        ("fetch", "--", "origin", "+refs/heads/main:refs/x"),
        ("fetch", "--", "origin", "refs/heads/main:refs/x/*"),
        ("push", "--", "origin", "refs/hitl/open/a:refs/hitl/open/a"),
        ("push", "--", "origin", f"{ID}:refs/hitl/open/a"),
        ("push", "--", "origin", "HEAD"),
        ("cat-file", "blob", "MERGE_HEAD:x"),
    ],
)
def test_a_call_with_a_name_is_refused(args: tuple[str, ...], tmp_path: Path) -> None:
    """Also what no text tells: each call is looked at, in this suite as everywhere."""
    git = Git(tmp_path, {})
    for call in (git.run, git.begin, git.pipe, git.out, git.ok, git.text):
        with pytest.raises(GitFailed, match="would complete the name"):
            call(*args)


@pytest.mark.parametrize(
    "args",
    [
        ("rev-parse", "--verify", f"{ID}^{{tree}}"),
        ("log", ID, "--", "refs/heads/main", "HEAD"),
        ("fetch", "--", "origin", "+refs/hitl/open/*:refs/x/*", "+refs/heads/ma*in:refs/x/ma*in"),
        (
            "push",
            "--",
            "origin",
            f"{ID}^{{object}}:refs/hitl/open/a",
            ":refs/heads/gone",
            "refs/a/*:refs/b/*",
        ),
        ("push", "--force-with-lease=refs/hitl/open/a:", "--", "origin", "^refs/hitl/open/b"),
        ("for-each-ref", "refs/heads/main"),
        ("reflog", "exists", "refs/heads/main"),
        ("log", "HEADY", "HEAD-of-it"),
    ],
)
def test_a_call_with_ids_is_left_alone(args: tuple[str, ...]) -> None:
    """And one whose subcommand completes nothing."""
    refuse_names(args)


@pytest.mark.parametrize(
    ("args", "fed"),
    [
        (("rev-list", "--stdin"), b"HEAD\n"),
        (("rev-list", "--stdin"), ID.encode() + b"\n^refs/heads/main\n"),
        (("cat-file", "--batch-check=%(objecttype)"), b"HEAD:file\n"),
        (("cat-file", "--batch"), b"refs/tags/v1\n"),
        (("pack-objects", "-q", "--revs"), b"@\n"),
    ],
)
def test_a_name_that_is_fed_is_refused(args: tuple[str, ...], fed: bytes, tmp_path: Path) -> None:
    """Git completes those of its standard input as well; ids, and messages, are left alone."""
    with pytest.raises(GitFailed, match="would complete the name"):
        Git(tmp_path, {}).run(*args, input=fed)
    with pytest.raises(GitFailed, match="would complete the name"):
        list(Git(tmp_path, {}).records(*args, input=fed))
    refuse_names(args, f"{ID}\n^{ID}\n{ID} refs/heads/main\n".encode())
    refuse_names(("commit-tree", ID, "-p", ID), b"HEAD is another now\n")
