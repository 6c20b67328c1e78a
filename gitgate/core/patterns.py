r"""Core: matches the `pattern` of a form's schema in time that no pattern can blow up.

Python's `re` tries alternatives one after another; `^(a+)+$` makes it try for years, and a schema comes from whoever
wrote the question. Here all alternatives advance together, so that the cost is the text's length times the pattern's.
"""

from __future__ import annotations

from .patternsyntax import Chain, Chars, Edge, Either, Node, Ranges, Reader, Repeat, UnfitPattern
from .values import dataclass

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
        node = Reader(pattern).whole()
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
