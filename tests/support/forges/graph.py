"""Test bed: GitHub's GraphQL, the part of it that a sweep asks: a query is held to GitHub's own schema, and answered with what it selects.

`github-graph.json` is extracted by `subset` from `schema.json` of the npm package @octokit/graphql-schema (MIT licence, © its
contributors). A slow test extracts it again from the real package and finds the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .standin import Forge

FILE = Path(__file__).with_name("github-graph.json")
USED: dict[str, tuple[str, ...]] = {
    "Query": ("repository",),
    "Repository": ("pullRequests",),
    "PullRequestConnection": ("pageInfo", "nodes"),
    "PageInfo": ("hasNextPage", "endCursor"),
    "PullRequest": ("headRefOid", "commits"),
    "PullRequestCommitConnection": ("nodes",),
    "PullRequestCommit": ("commit",),
    "Commit": ("oid", "status", "checkSuites"),
    "Status": ("context",),
    "StatusContext": ("state", "description"),
    "CheckSuiteConnection": ("nodes",),
    "CheckSuite": ("checkRuns",),
    "CheckRunConnection": ("nodes",),
    "CheckRun": ("databaseId", "status", "externalId"),
}
INPUTS = ("CheckSuiteFilter", "CheckRunFilter")
TOKEN = re.compile(r'[A-Za-z_]\w*|\d+|"[^"]*"|\S')
PAGE = 100
Tree = dict[str, Any]


def subset(said: Mapping[str, Any]) -> dict[str, Any]:
    """Of the whole schema, as introspection tells it."""
    types = {one["name"]: one for one in said.get("data", said)["__schema"]["types"]}
    fields = {
        name: {
            one["name"]: {"args": typed(one["args"]), "type": named(one["type"])}
            for one in types[name]["fields"]
            if one["name"] in wanted
        }
        for name, wanted in USED.items()
    }
    return {"fields": fields, "inputs": {name: typed(types[name]["inputFields"]) for name in INPUTS}}


def typed(items: list[dict[str, Any]]) -> dict[str, str]:
    return {one["name"]: named(one["type"]) for one in items}


def named(kind: Mapping[str, Any]) -> str:
    """As it is written in a schema."""
    inner = kind.get("ofType")
    if kind["kind"] == "NON_NULL":
        return f"{named(inner or {})}!"
    return f"[{named(inner or {})}]" if kind["kind"] == "LIST" else str(kind["name"])


@cache
def schema(file: Path = FILE) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8")))


def parse(query: str) -> tuple[dict[str, str], Tree]:
    """A query of one operation: its variables with their types, and what it selects."""
    tokens = TOKEN.findall(query.replace(",", " "))
    assert tokens[:2] == ["query", "("]
    del tokens[:2]
    variables: dict[str, str] = {}
    while (token := tokens.pop(0)) != ")":
        assert token == "$"
        name, colon = tokens.pop(0), tokens.pop(0)
        assert colon == ":"
        variables[name] = ""
        while tokens[0] not in ("$", ")"):
            variables[name] += tokens.pop(0)
    assert tokens.pop(0) == "{"
    return variables, selection(tokens)


def selection(tokens: list[str]) -> Tree:
    """Up to the closing brace, which is taken."""
    found: Tree = {}
    while (name := tokens.pop(0)) != "}":
        args, inside = {}, {}
        if tokens[0] == "(":
            tokens.pop(0)
            args = arguments(tokens, ")")
        if tokens[0] == "{":
            tokens.pop(0)
            inside = selection(tokens)
        found[name] = (args, inside)
    return found


def arguments(tokens: list[str], end: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while (name := tokens.pop(0)) != end:
        assert tokens.pop(0) == ":"
        word = tokens.pop(0)
        if word == "{":
            found[name] = arguments(tokens, "}")
        else:
            found[name] = f"${tokens.pop(0)}" if word == "$" else word
    return found


def hold(body: Mapping[str, Any], file: Path = FILE) -> Tree:
    """What the query selects, found valid: each field and argument is known, and each variable has its type and a value."""
    variables, tree = parse(str(body["query"]))
    given = body["variables"]
    assert set(given) <= set(variables), f"not declared: {set(given) - set(variables)}"
    missing = [name for name, kind in variables.items() if kind.endswith("!") and given.get(name) is None]
    assert not missing, f"without a value: {missing}"
    used = set(hold_fields(tree, "Query", variables, schema(file)))
    assert used == set(variables), f"not used: {set(variables) - used}"
    return tree


def hold_fields(
    tree: Tree, kind: str, variables: Mapping[str, str], said: Mapping[str, Any]
) -> Iterator[str]:
    known = said["fields"][kind]
    for name, (args, inside) in tree.items():
        assert name in known, f"{kind} has no field {name}"
        yield from hold_arguments(args, known[name]["args"], variables, said, f"{kind}.{name}")
        inner = known[name]["type"].strip("[]!")
        assert bool(inside) == (inner in said["fields"]), f"{kind}.{name} is a {inner}"
        if inside:
            yield from hold_fields(inside, inner, variables, said)
        pages = "Connection" in inner
        assert not pages or "first" in args or "last" in args, f"{kind}.{name} has to say how many"


def hold_arguments(
    args: Mapping[str, Any],
    known: Mapping[str, str],
    variables: Mapping[str, str],
    said: Mapping[str, Any],
    where: str,
) -> Iterator[str]:
    needed = {name for name, kind in known.items() if kind.endswith("!")}
    assert needed <= set(args), f"{where} needs {needed - set(args)}"
    for name, word in args.items():
        assert name in known, f"{where} takes no {name}"
        wanted = known[name].strip("!")
        if isinstance(word, dict):
            inputs = said["inputs"][known[name]]
            yield from hold_arguments(word, inputs, variables, said, f"{where}({name})")
        elif word.startswith("$"):
            assert variables[word[1:]].strip("!") == wanted, f"{where}({name}) is a {wanted}"
            yield word[1:]
        else:
            words = said.get("enums", {}).get(wanted)
            assert words is None or word in words, f"{where}({name}) knows no {word}"


def answer(forge: Forge, body: Mapping[str, Any], tree: Tree) -> dict[str, Any]:
    """As GitHub does: what was selected, of open pull requests, a page at a time."""
    given = body["variables"]
    if f"{given['owner']}/{given['name']}" != forge.repository:
        return {
            "data": {"repository": None},
            "errors": [{"type": "NOT_FOUND", "message": "Could not resolve"}],
        }
    pulls = [one for one in forge.pulls.values() if one["state"] == "open"]
    start = int(given.get("after") or 0)
    more = len(pulls) > start + PAGE
    nodes = [pull_of(forge, one["head"]["sha"], given) for one in pulls[start : start + PAGE]]
    info = {"hasNextPage": more, "endCursor": str(start + PAGE) if more else None}
    whole = {"repository": {"pullRequests": {"pageInfo": info, "nodes": nodes}}}
    return {"data": selected(whole, tree)}


def pull_of(forge: Forge, head: str, given: Mapping[str, Any]) -> dict[str, Any]:
    statuses = [one for one in forge.statuses if one["sha"] == head]
    ours = [one for one in statuses if one["context"] == given["status"]]
    context = {"state": ours[-1]["state"].upper(), "description": ours[-1]["description"]} if ours else None
    checks = [one for one in forge.checks if (one["head_sha"], one["name"]) == (head, given["check"])]
    runs = [
        {"databaseId": one["id"], "status": one["status"].upper(), "externalId": one["external_id"]}
        for one in checks[-1:]
    ]
    commit = {
        "oid": head,
        "status": {"context": context} if statuses else None,
        "checkSuites": {"nodes": [{"checkRuns": {"nodes": runs}}] if runs else []},
    }
    return {"headRefOid": head, "commits": {"nodes": [{"commit": commit}]}}


def selected(value: Any, tree: Tree) -> Any:
    if isinstance(value, list):
        return [selected(one, tree) for one in value]
    if not tree or value is None:
        return value
    return {name: selected(value[name], inside) for name, (_, inside) in tree.items()}
