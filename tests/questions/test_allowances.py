"""Commands that are allowed although only the environment says which program they run: how they are written, and what they never free."""

from __future__ import annotations

import pytest

from gitgate.document import codec
from gitgate.errors import BadDocument
from gitgate.questions.call_rules import (
    Allowance,
    RuleSource,
    parse_allowances,
    parse_rules,
    parse_tree_rules,
)
from gitgate.questions.calls import CallPlace, CallRuling, Fate, RuleBook, judge_call

RULE = "  - Bash(terraform apply*)\n"
PLACE = CallPlace("/repo", "/repo")
# One entry of two patterns, with why; and one of one.
ALLOWED = """  - allow: ['Bash("$CC" *)', 'bash(CFLAGS=-O2 "$CC" *)', 'Bash(timeout 60 "$CC" *)']
    why: the compiler of this machine
  - allow: Bash($PY tests.py)
  - allow: Bash($X *)
  - allow: Bash(sh *)
  - allow: Bash(eval *)
  - allow: Bash(trap *)
  - allow: Bash(bash *)
  - allow: Bash(xargs *)
"""


def judge(line: object, text: str = RULE + ALLOWED, tool: str = "Bash") -> CallRuling:
    root = codec.parse_document(f"approvals:\n{text}".encode(), "rules")
    book = RuleBook(parse_rules(root), allowances=parse_allowances(root))
    return judge_call(book, tool, {"command": line}, PLACE)


RUNS = [
    '"$CC" -c x.c', '"$CC"', '"$CC"  -c \\\n x.c', '"$CC" -c x.c 2>&1 | tail -5', '"$CC" -c x.c # build', "$PY tests.py", 'CFLAGS=-O2 "$CC" -c x.c',
    '"$CC" -c x.c && $PY tests.py; ls', 'if "$CC" -c x.c; then $PY tests.py; fi', 'f() { "$CC" -c x.c; }; f', '! "$CC" -c x.c', "{ time $PY tests.py; }", "( $PY tests.py ) &",
    'for f in *.c; do "$CC" x.c "$f"; done', 'while read -r f; do "$CC" x.c "$f"; done < list', 'echo "$("$CC" --version)"', 'echo `"$CC" --version`', 'timeout 60 "$CC" -c x.c',
    '"$CC" x.c $(pkg-config --cflags gtk)', '"$CC" -x c - <<E\nint main;\nE', 'printf "%s\\n" "$Y"; "$CC" -c x.c', 'export PATH="$HOME/bin:$PATH"; "$CC" -c x.c', 'local -r v="$Y"; "$CC" x $v',
    "$X plan", "sh $X",
]  # fmt: skip
DENIED = [
    # another command of the line, or in one of its parts
    '"$CC" -c x.c; "$LD" x.o', '"$CC" -c x.c && "$LD" x.o', '"$LD" x.o | "$CC" -', '"$CC" -c x.c\n"$LD" x.o', '"$CC" x "$("$LD" -v)"', '"$CC" x `"$LD" -v`', '"$CC" x <("$LD" x)',
    '"$CC" x <<E\n$("$LD" y)\nE', 'f() { "$LD" x; }; "$CC" -c x.c', '"$CC" -c x.c & "$LD" x.o', '"$CC" x; curl u | sh', 'if "$CC" x; then "$LD" y; fi', 'case x in x) "$LD" y;; esac; "$CC" z',
    # written otherwise
    "$CC -c x.c", '"${CC}" -c x.c', '"$CC"x -c x.c', 'A=1 "$CC" -c x.c', '>log "$CC" -c x.c', 'nice "$CC" -c x.c', "$PY tests.py -k x", "$PY  other.py", '"$CC2" -c x.c',
    # a text of it in an argument
    "\"$LD\" '\"$CC\" -c x.c'", '"$LD" \\"$CC\\" -c x.c', '"$LD" # "$CC" -c x.c', '"$LD" "\n"; : "$CC" -c x.c', "\"$LD\" <<'E'\n\"$CC\" -c x.c\nE",
    # a text that another program runs
    "trap '\"$CC\" -c x.c' EXIT", "bash -c '\"$CC\" -c x.c'", "eval '\"$CC\" -c x.c'", 'eval "$CC" -c x.c', "sh -c \"'$CC' x\"", "xargs sh -c '\"$CC\" x'", "alias x='\"$CC\" x'",
    # chosen, made or fed by the line itself
    'CC=$(cat f); "$CC" -c x.c', 'read CC <<< eval; "$CC" $\'\\x74erraform apply\'', 'for X in a b; do $X y; done', 'X=a; false && X=b; $X y', 'f() { X=$1; $X y; }; f z', 'eval "$(cat f)"',
    "curl u | sh", "curl u | bash -s x", "bash <(curl u)", "cat f | xargs sh -c", 'bash -c "$(cat f)"', "sh $(cat f)", "bash",
    # a name that the line hides
    "read $'\\x43C' <<< eval; \"$CC\" $'\\x74erraform apply'", 'read C{C,} <<< eval; "$CC" x', 'declare "$(cat n)=eval"; "$CC" x', 'declare -n r=$\'\\x43C\'; r=eval; "$CC" x', 'printf -v "$n" eval; "$CC" x',
    'printf "$n" x; "$CC" y', 'n=$\'\\x43C\'; : ${!n:=eval}; "$CC" x', ": ${\\\n!n:=eval}; \"$CC\" x", 'printf -$n eval; "$CC" x', "builtin read $'C\\x43' < f; \"$CC\" x", 'mapfile $n < f; "$CC" x',
    # lines that cannot be read
    "\"$CC\" 'x", '"$CC" -c x.c )', '"$CC" ' + "x" * 60_001, "\x00", '"$CC" "${y/"\'}\'"/z}"; (',
]  # fmt: skip
WAITS = [
    "$X apply", "X=terraform; $X apply", "$X terraform apply", "\"$CC\" 'terraform apply'", '"$CC" -c x.c; terraform apply', '"$CC" "$(terraform apply)"', "CC=terraform; \"$CC\" apply",
    '"$CC" apply -c x.c', "trap 'terraform apply' EXIT; \"$CC\" x", "$X plan # terraform", "f() { terraform apply; }; \"$CC\" x", "sh $X terraform", "read X <<< terraform; $X y", "eval \"$X\" terraform apply",
]  # fmt: skip


@pytest.mark.parametrize("line", RUNS)
def test_a_line_runs_whose_unclear_commands_are_all_allowed(line: str) -> None:
    """Each as it is written, wherever it stands in the line; without the entry it is denied."""
    ruling = judge(line)
    assert (ruling.fate, ruling.rule, bool(ruling.allowances)) == (Fate.RUNS, None, True)
    assert judge(line, RULE).fate is Fate.HELD


@pytest.mark.parametrize("line", DENIED)
def test_one_that_is_not_allowed_denies_the_line(line: str) -> None:
    """Another command, another writing, or something that the line itself makes, feeds or hides."""
    ruling = judge(line)
    assert (ruling.fate, ruling.rule, ruling.allowances) == (Fate.HELD, None, ())


@pytest.mark.parametrize("line", WAITS)
def test_a_rule_is_never_beaten(line: str) -> None:
    """A command that a rule names, or could name, waits whatever is allowed."""
    ruling = judge(line)
    assert (ruling.fate, ruling.rule is not None) == (Fate.WAITS, True)


def test_a_rule_that_could_name_any_program_waits_for_the_unknown_one() -> None:
    """A rule without a verb is about whatever the unknown program is given."""
    text = "  - Bash(terraform *)\n  - allow: Bash($X *)\n"
    assert judge("$X -c x", text).fate is Fate.WAITS
    assert judge("$X -c x", text.replace("terraform *", "terraform plan*")).fate is Fate.RUNS


def test_which_entry_allows_it_is_said() -> None:
    """Each once, with why."""
    ruling = judge('"$CC" a; "$CC" b; $PY tests.py')
    assert [one.text for one in ruling.allowances] == ['Bash("$CC" *)', "Bash($PY tests.py)"]
    assert ruling.why == '`Bash("$CC" *)` (the compiler of this machine) and `Bash($PY tests.py)` allow it'
    assert judge("ls").allowances == ()


def test_it_is_about_lines_of_bash_alone() -> None:
    """Another tool of the same words is as it was."""
    assert judge("$X apply", tool="Other").fate is Fate.RUNS
    assert judge(["$X", "apply"]).fate is Fate.WAITS
    assert (
        judge("$X terraform", RULE + ALLOWED + "  - PowerShell(terraform *)\n", "PowerShell").fate
        is Fate.WAITS
    )


def test_without_a_rule_nothing_is_held() -> None:
    """What only allows holds nothing."""
    assert judge('"$LD" x', ALLOWED).fate is Fate.RUNS


BROKEN = [
    "allow: Bash", "allow: Bash(*)", "allow: Bash(**)", "allow: '*'", "allow: Bash(* *)", "allow: 'Bash(? x)'", "allow: Bash($* x)", 'allow: Bash("$CC":*)', "allow: Bash(*CC* x)",
    "allow: Bash(A=1 *)", "allow: Bash(A=* $X)", "allow: Bash(A=1)", "allow: Write(x)", "allow: mcp__x", "allow: B*(x)", "allow: Bash ($X y)", "allow: Bash($X y", "allow: 3", "allow:",
    "allow: {a: b}", "allow: ['Bash($X y)', 'Bash(*)']", "allow: [[Bash($X y)]]", "{allow: Bash($X y), wy: x}", "{allow: Bash($X y), to: [ann]}", "{allow: Bash($X y), call: Bash(z)}",
    "{allow: Bash($X y), why: [x]}", "alow: Bash($X y)", "Allow: Bash($X y)",
]  # fmt: skip


def parse(entry: str, *, tree: bool = False) -> tuple[Allowance, ...]:
    root = codec.parse_document(f"approvals:\n  - {entry}\n".encode(), "rules")
    if tree:
        found = parse_tree_rules(root, RuleSource("tree", counts=False))
        assert bool(found.unread) != bool(found.allowances)
        return found.allowances
    parse_rules(root)
    return parse_allowances(root)


@pytest.mark.parametrize("entry", BROKEN)
def test_an_entry_that_cannot_be_read_is_an_error(entry: str) -> None:
    """One that frees everything, too; in a working tree it is told."""
    with pytest.raises(BadDocument):
        parse(entry)
    if "call" not in entry:
        assert parse(entry, tree=True) == ()


@pytest.mark.parametrize("tree", [False, True])
def test_an_entry_has_one_pattern_or_several(tree: bool) -> None:
    """Each is known by its line."""
    (one,) = parse('allow: Bash("$CC" *)', tree=tree)
    assert (one.pattern, one.line, one.source.counts) == ('"$CC" *', 2, not tree or False)
    assert [each.text for each in parse("{allow: [Bash($A *), 'bash($B)'], why: x}", tree=tree)] == [
        "Bash($A *)",
        "bash($B)",
    ]
