r"""Core: matches the `pattern` of a form's schema in time that no pattern can blow up.

Python's `re` tries alternatives one after another; `^(a+)+$` makes it try for years, and a schema comes from whoever
wrote the question. Here all alternatives advance together, so that the cost is the text's length times the pattern's.
"""

from __future__ import annotations

from ..document.values import dataclass

MOST_CHARACTERS = 500
MOST_DEPTH = 20

Ranges = tuple[tuple[str, str], ...]

DIGIT: Ranges = (("0", "9"),)
WORD: Ranges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
SPACE: Ranges = (
    ("\t", "\r"), (" ", " "), ("\xa0", "\xa0"), ("\u1680", "\u1680"), ("\u2000", "\u200a"),
    ("\u2028", "\u2029"), ("\u202f", "\u202f"), ("\u205f", "\u205f"), ("\u3000", "\u3000"), ("\ufeff", "\ufeff"),
)  # fmt: skip
LINE_ENDS: Ranges = (("\n", "\n"), ("\r", "\r"), ("\u2028", "\u2029"))
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
TOP = chr(0x10FFFF)


class UnfitPattern(ValueError):
    """The pattern is wrong, too large, or of a kind that is not matched here; says which."""


@dataclass(frozen=True)
class Chars:
    """One character within the ranges."""

    ranges: Ranges


@dataclass(frozen=True)
class Edge:
    """The beginning (`^`) or the end (`$`) of the text."""

    end: bool


@dataclass(frozen=True)
class Chain:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Either:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    part: Node
    low: int
    high: int | None


Node = Chars | Edge | Chain | Either | Repeat


def without(ranges: Ranges) -> Ranges:
    """Every character that is not within `ranges`."""
    kept: list[tuple[str, str]] = []
    start = 0
    for low, high in sorted(ranges):
        if ord(low) > start:
            kept.append((chr(start), chr(ord(low) - 1)))
        start = max(start, ord(high) + 1)
    if start <= ord(TOP):
        kept.append((chr(start), TOP))
    return tuple(kept)


class PatternReader:
    """Reads a pattern into nodes, from left to right."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MOST_CHARACTERS:
            raise UnfitPattern(f"at most {MOST_CHARACTERS} characters in a pattern, not {len(pattern)}")
        self.pattern = pattern
        self.at = 0

    def peek(self, length: int = 1) -> str:
        return self.pattern[self.at : self.at + length]

    def take(self, wanted: str) -> bool:
        if wanted and self.pattern.startswith(wanted, self.at):
            self.at += len(wanted)
            return True
        return False

    def whole(self) -> Node:
        node = self.either(0)
        if self.peek():
            raise UnfitPattern("a `)` without its `(`")
        return node

    def either(self, depth: int) -> Node:
        if depth > MOST_DEPTH:
            raise UnfitPattern(f"at most {MOST_DEPTH} groups within one another")
        parts = [self.chain(depth)]
        while self.take("|"):
            parts.append(self.chain(depth))
        return Either(tuple(parts)) if len(parts) > 1 else parts[0]

    def chain(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated(self.atom(depth)))
        return Chain(tuple(parts))

    def repeated(self, part: Node) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return part
        if isinstance(part, Edge):
            raise UnfitPattern("nothing to repeat after `^` or `$`")
        self.take("?")  # lazy or greedy: the same texts match
        if self.peek() and self.peek() in SIGNS:
            raise UnfitPattern(f"a repetition of a repetition at character {self.at + 1}")
        return Repeat(part, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        sign = self.peek()
        if sign and sign in SIGNS:
            self.at += 1
            return SIGNS[sign]
        if self.peek() != "{":
            return None
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        if not _count(low) or not (high == "" or _count(high)):
            raise UnfitPattern(r"`{` without a count such as {2} or {2,5}; the character itself is `\{`")
        self.at = end + 1
        least = int(low)
        most = least if not comma else int(high) if high else None
        if most is not None and most < least:
            raise UnfitPattern(f"a count that ends before it begins: {{{low},{high}}}")
        return least, most

    def atom(self, depth: int) -> Node:
        character = self.peek()
        if character == "{" or character in SIGNS:
            raise UnfitPattern(f"nothing to repeat at character {self.at + 1}")
        self.at += 1
        if character == "(":
            return self.group(depth)
        if character == "[":
            return Chars(self.bracket())
        if character == ".":
            return Chars(without(LINE_ENDS))
        if character in "^$":
            return Edge(character == "$")
        if character == "\\":
            return Chars(self.escape())
        return Chars(((character, character),))

    def group(self, depth: int) -> Node:
        if self.peek() == "?" and not self.take("?:"):
            raise UnfitPattern(f"no lookaround, name or flag `({self.peek(3)}`; a group is `(…)` or `(?:…)`")
        node = self.either(depth + 1)
        if not self.take(")"):
            raise UnfitPattern("a `(` without its `)`")
        return node

    def escape(self) -> Ranges:
        letter = self.peek()
        self.at += 1
        if not letter:
            raise UnfitPattern(r"a `\` at the end")
        if letter.lower() in CLASSES:
            ranges = CLASSES[letter.lower()]
            return ranges if letter.islower() else without(ranges)
        if letter in "xu":
            character = self.code(2 if letter == "x" else 4)
        elif letter in CONTROLS:
            character = CONTROLS[letter]
        elif letter.isascii() and letter.isalnum():
            raise UnfitPattern(
                rf"no `\{letter}` (backreferences, boundaries and properties are not matched here)"
            )
        else:
            character = letter
        return ((character, character),)

    def code(self, digits: int) -> str:
        text = self.peek(digits)
        if len(text) != digits or not all(digit in "0123456789abcdefABCDEF" for digit in text):
            raise UnfitPattern(rf"{digits} hexadecimal digits after `\x` or `\u`, not `{text}`")
        self.at += digits
        return chr(int(text, 16))

    def bracket(self) -> Ranges:
        negated = self.take("^")
        ranges: list[tuple[str, str]] = []
        while not self.take("]"):
            first = self.member()
            if _single(first) and self.peek() == "-" and self.peek(2) not in ("-", "-]"):
                self.at += 1
                last = self.member()
                if not _single(last) or first[0][0] > last[0][0]:
                    raise UnfitPattern("a range in `[…]` that does not go from one character up to another")
                ranges.append((first[0][0], last[0][0]))
            else:
                ranges += first
        fitting = without(tuple(ranges)) if negated else tuple(ranges)
        if not fitting:
            raise UnfitPattern("a `[…]` that some character fits")
        return fitting

    def member(self) -> Ranges:
        character = self.peek()
        if not character:
            raise UnfitPattern("a `[` without its `]`")
        self.at += 1
        if character == "\\":
            if self.take("b"):
                return (("\b", "\b"),)
            return (("-", "-"),) if self.take("-") else self.escape()
        return ((character, character),)


def _count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


__all__ = ["Pattern", "UnfitPattern"]

MOST_STATES = 1000


@dataclass(frozen=True)
class _State:
    """A place in the pattern. With ranges it takes a character; with an edge it asks for one; else it only forks."""

    nexts: tuple[int, ...] = ()
    ranges: Ranges = ()
    edge: Edge | None = None
    accepts: bool = False


class Pattern:
    """A compiled pattern; `weight` times the text's length bounds what `found_in` costs."""

    def __init__(self, pattern: str) -> None:
        node = PatternReader(pattern).whole()
        self.states: list[_State] = [_State(accepts=True)]
        self.weight = 1
        self.start = self.build(node, 0)

    def add(self, state: _State) -> int:
        self.states.append(state)
        self.weight += 1 + len(state.ranges)
        if len(self.states) > MOST_STATES:
            raise UnfitPattern(f"at most {MOST_STATES} places once its counts are written out")
        return len(self.states) - 1

    def build(self, node: Node, after: int) -> int:
        """States for `node`, built from its end, that go on at `after`; returns where it begins."""
        if isinstance(node, Chars):
            return self.add(_State((after,), ranges=node.ranges))
        if isinstance(node, Edge):
            return self.add(_State((after,), edge=node))
        if isinstance(node, Chain):
            for part in reversed(node.parts):
                after = self.build(part, after)
            return after
        if isinstance(node, Either):
            return self.add(_State(tuple(self.build(part, after) for part in node.parts)))
        return self.build_repeat(node, after)

    def build_repeat(self, node: Repeat, after: int) -> int:
        if node.high is None:
            loop = self.add(_State())
            self.states[loop] = _State((self.build(node.part, loop), after))
            start = loop
        else:
            start = after
            for _ in range(node.high - node.low):
                start = self.add(_State((self.build(node.part, start), after)))
        for _ in range(node.low):
            before = len(self.states)
            start = self.build(node.part, start)
            if len(self.states) == before:
                break  # the part is empty, and so is any number of it
        return start

    def found_in(self, text: str) -> bool:
        """Whether some part of `text` matches, as JSON Schema's `pattern` asks."""
        current: set[int] = set()
        for position in range(len(text) + 1):
            last = position == len(text)
            takers = self.reach({*current, self.start}, first=position == 0, last=last)
            if takers is None:
                return True
            if not last:
                current = self.advance(takers, text[position])
        return False

    def reach(self, begin: set[int], *, first: bool, last: bool) -> list[_State] | None:
        """The states that take a character, reachable without taking one; None if the end is."""
        seen = set(begin)
        waiting = list(begin)
        takers: list[_State] = []
        while waiting:
            state = self.states[waiting.pop()]
            if state.accepts:
                return None
            if state.ranges:
                takers.append(state)
            elif state.edge is None or (last if state.edge.end else first):
                for following in state.nexts:
                    if following not in seen:
                        seen.add(following)
                        waiting.append(following)
        return takers

    @staticmethod
    def advance(takers: list[_State], character: str) -> set[int]:
        return {s.nexts[0] for s in takers if any(low <= character <= high for low, high in s.ranges)}
