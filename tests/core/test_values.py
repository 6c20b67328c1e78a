"""Values: the light decorator and the real one make classes that behave alike."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, field
from functools import partial
from typing import Any

import pytest

from gitgate.core import model
from gitgate.core.values import dataclass, make_frozen


def shaped(decorate: Callable[[type], type]) -> Any:
    """The same class, under another decorator."""

    class Parent:
        words: str
        count: int = 3
        secret: str = field(default="", repr=False)
        terms: Mapping[str, object] = field(default_factory=dict)

        @property
        def twice(self) -> int:
            return self.count * 2

    return decorate(Parent)


LIGHT, REAL = shaped(make_frozen), shaped(dataclasses.dataclass(frozen=True))


@dataclass(frozen=True)
class Kept:
    """As the rest of the package writes it."""

    words: str
    parts: tuple[str, ...] = ()


@pytest.mark.parametrize("kind", [LIGHT, REAL])
def test_a_value(kind: Any) -> None:
    """Positions, names and defaults; equal by what it holds; each default of its own."""
    one, other = kind("a", 1), kind(count=1, words="a")
    assert one == other
    assert one != kind("a", 2)
    assert one != ("a", 1)
    assert one.terms == {}
    assert one.terms is not other.terms
    assert kind("a").twice == 6
    assert repr(kind("a", secret="hush")) == "shaped.<locals>.Parent(words='a', count=3, terms={})"
    assert [f.name for f in dataclasses.fields(kind)] == ["words", "count", "secret", "terms"]
    assert dataclasses.asdict(one) == {"words": "a", "count": 1, "secret": "", "terms": {}}
    assert dataclasses.replace(one, count=2) == kind("a", 2)
    assert kind.__match_args__ == ("words", "count", "secret", "terms")
    assert list(inspect.signature(kind).parameters) == ["words", "count", "secret", "terms"]


@pytest.mark.parametrize("kind", [LIGHT, REAL])
def test_nothing_of_it_changes(kind: Any) -> None:
    """Not a field, not one that is not there; not by deleting."""
    one = kind("a")
    for change in (
        partial(setattr, one, "words", "b"),
        partial(setattr, one, "new", "b"),
        partial(delattr, one, "words"),
    ):
        with pytest.raises(FrozenInstanceError):
            change()
    assert one == kind("a")


@pytest.mark.parametrize("kind", [LIGHT, REAL])
@pytest.mark.parametrize(
    ("args", "named"), [((), {}), (("a", 1, "", {}, 5), {}), (("a",), {"words": "b"}), (("a",), {"new": 1})]
)
def test_a_wrong_call_is_a_type_error(kind: Any, args: tuple[object, ...], named: dict[str, object]) -> None:
    """Too few, too many, twice, unknown."""
    with pytest.raises(TypeError):
        kind(*args, **named)


def test_it_is_a_key_where_its_parts_are() -> None:
    """Equal values are one key; another class with the same parts is not equal."""
    assert len({Kept("a"), Kept("a"), Kept("b")}) == 2
    with pytest.raises(TypeError):
        hash(LIGHT("a"))
    assert Kept("a") != LIGHT("a")


def test_it_is_copied() -> None:
    """As any object is."""
    one = Kept("a", ("b",))
    assert copy.deepcopy(one) == copy.copy(one) == one


def test_the_model_is_made_of_values() -> None:
    """Each class of the model is a frozen dataclass."""
    for name, kind in vars(model).items():
        if isinstance(kind, type) and kind.__module__ == model.__name__:
            assert dataclasses.is_dataclass(kind), name
            with pytest.raises(FrozenInstanceError):
                object.__new__(kind).anything = 1  # type: ignore[attr-defined]
