"""Values: the light decorator and the real one make classes that behave alike."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import subprocess
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, field
from functools import partial
from typing import Any, NamedTuple

import pytest

from gitgate import document
from gitgate.document import dataclass, make_frozen
from gitgate.model import gate

FIELDS = ["words", "count", "secret", "terms", "aside"]


def shaped(decorate: Callable[[type], type], field: Any = field) -> Any:
    """The same class, under another decorator, its fields told by ours or by the real `field`."""

    class Parent:
        words: str
        count: int = 3
        secret: str = field(default="", repr=False)
        terms: Mapping[str, object] = field(default_factory=dict)
        aside: int = field(default=0, compare=False)

        @property
        def twice(self) -> int:
            return self.count * 2

    return decorate(Parent)


LIGHT, REAL = shaped(make_frozen), shaped(dataclasses.dataclass(frozen=True))
OWN = shaped(make_frozen, document.field)


@dataclass(frozen=True)
class Kept:
    """As the rest of the package writes it."""

    words: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=False)
class Changing:
    """One whose fields may be set."""

    words: str
    parts: list[str] = document.field(default_factory=list)


@pytest.mark.parametrize("kind", [LIGHT, REAL, OWN])
def test_a_value(kind: Any) -> None:
    """Positions, names and defaults; equal by what it holds; each default of its own."""
    one, other = kind("a", 1), kind(count=1, words="a")
    assert one == other
    assert one != kind("a", 2)
    assert one != ("a", 1)
    assert one.terms == {}
    assert one.terms is not other.terms
    assert kind("a").twice == 6
    assert repr(kind("a", secret="hush")) == "shaped.<locals>.Parent(words='a', count=3, terms={}, aside=0)"
    assert [f.name for f in dataclasses.fields(kind)] == FIELDS
    assert dataclasses.asdict(one) == {"words": "a", "count": 1, "secret": "", "terms": {}, "aside": 0}
    assert dataclasses.replace(one, count=2) == document.replace(one, count=2) == kind("a", 2)
    assert kind("a", aside=1) == kind("a", aside=2)
    assert kind.__match_args__ == tuple(FIELDS)
    assert list(inspect.signature(kind).parameters) == FIELDS


@pytest.mark.parametrize("kind", [LIGHT, OWN])
def test_the_standard_functions_know_the_fields_as_ever(kind: Any) -> None:
    """Defaults and all, though they are told only when somebody asks."""
    ours, real = dataclasses.fields(kind), dataclasses.fields(REAL)
    told = ("name", "type", "default", "default_factory", "repr", "compare", "init")
    assert [[getattr(f, each) for each in told] for f in ours] == [
        [getattr(f, each) for each in told] for f in real
    ]
    child = dataclasses.make_dataclass("Child", [("more", int, 0)], bases=(kind,))
    assert [f.name for f in dataclasses.fields(child)] == [*FIELDS, "more"]


def test_a_class_that_goes_on_from_another_has_its_fields_too() -> None:
    """Its own come last; a default that all would share is refused."""

    @make_frozen
    class Longer(Kept):
        more: int = 1

    assert dataclasses.astuple(Longer("a", ("b",), 2)) == ("a", ("b",), 2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="shared by all"):
        make_frozen(type("Shared", (), {"__annotations__": {"parts": "list"}, "parts": []}))


def test_one_that_changes() -> None:
    """Its fields are set; it is no key."""
    one = Changing("a")
    one.words = "b"
    one.parts.append("c")
    assert one == Changing("b", ["c"])
    assert Changing("b").parts == []
    with pytest.raises(TypeError):
        hash(one)


@pytest.mark.usefixtures("unmeasured")
def test_defining_values_imports_nothing_for_it() -> None:
    """A receiving hook starts in the time that importing `dataclasses` would take."""
    code = "import sys, gitgate.record.events, gitgate.model.gate; print('dataclasses' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"


@pytest.mark.parametrize("kind", [LIGHT, REAL, OWN])
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


@pytest.mark.parametrize("kind", [LIGHT, REAL, OWN])
@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), (("a", 1, "", {}, 5, 6), {}), (("a",), {"words": "b"}), (("a",), {"new": 1})],
)
def test_a_wrong_call_is_a_type_error(kind: Any, args: tuple[object, ...], named: dict[str, object]) -> None:
    """Too few, too many, twice, unknown; Python's own words for it."""
    with pytest.raises(TypeError, match=r"__init__\(\)"):
        kind(*args, **named)


@pytest.mark.parametrize("named", [{"words": "b"}, {"new": 1}])
def test_a_wrong_call_of_a_class_of_which_few_values_were_made(named: dict[str, object]) -> None:
    """It is told as any other, and makes no value."""
    kind = shaped(make_frozen)
    with pytest.raises(
        TypeError, match=r"__init__\(\) got (multiple values for|an unexpected keyword) argument"
    ):
        kind("a", **named)
    assert kind("a").words == "a"


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


def is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def test_the_model_is_made_of_values() -> None:
    """Each class of the model is a frozen dataclass, but for what only says what others have."""
    for name, kind in vars(gate).items():
        if isinstance(kind, type) and kind.__module__ == gate.__name__ and not is_protocol(kind):
            assert dataclasses.is_dataclass(kind), name
            with pytest.raises(FrozenInstanceError):
                object.__new__(kind).anything = 1  # type: ignore[attr-defined]


class Row(document.NamedTuple):
    """As the rest of the package writes one."""

    name: str
    size: int = 3

    @property
    def twice(self) -> int:
        return self.size * 2


class RealRow(NamedTuple):
    """As `typing` makes it."""

    name: str
    size: int = 3

    @property
    def twice(self) -> int:
        return self.size * 2


@pytest.mark.parametrize("kind", [Row, RealRow])
def test_a_tuple_with_names(kind: Any) -> None:
    """By place and by name, with defaults and what else the class says; it is copied as any tuple."""
    one = kind("a")
    assert (one.name, one.size, one.twice) == ("a", 3, 6)
    assert one == ("a", 3) == kind(size=3, name="a")
    assert repr(one) == f"{kind.__name__}(name='a', size=3)"
    assert one._replace(size=4) == kind("a", 4)
    assert (kind._fields, kind._field_defaults) == (("name", "size"), {"size": 3})
    assert typing.get_type_hints(kind) == {"name": str, "size": int}
    assert (kind.__module__, kind.__qualname__) == (__name__, kind.__name__)
    assert "write" in kind.__doc__ or "makes" in kind.__doc__
    assert copy.deepcopy(one) == copy.copy(one) == one
    with pytest.raises(AttributeError):
        one.size = 4
    for args, named in (((), {}), (("a", 1, 2), {}), (("a",), {"name": "b"}), (("a",), {"new": 1})):
        with pytest.raises(TypeError):
            kind(*args, **named)


@pytest.mark.usefixtures("unmeasured")
def test_what_judges_a_push_compiles_no_annotation() -> None:
    """Whoever pushes waits for it; to compile the first one takes longer than to load most modules."""
    code = (
        "import builtins, sys\n"
        "real = builtins.compile\n"
        "def compile(source, name, *rest, **more):\n"
        "    if name == '<string>': sys.exit(f'compiled: {source}')\n"
        "    return real(source, name, *rest, **more)\n"
        "builtins.compile = compile\n"
        "import gitgate.cli.receive, gitgate.exchange.entering, gitgate.sharing\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_class_is_made_ready_when_many_values_are_made() -> None:
    """Until then it costs next to nothing, and its values are the same; also where another class goes on from it."""

    @document.dataclass(frozen=True)
    class Base:
        first: int
        second: tuple[int, ...] = document.field(default_factory=tuple)

    @document.dataclass(frozen=True)
    class More(Base):
        third: str = "x"

    assert all(isinstance(vars(kind)["__init__"], document.LateInit) for kind in (Base, More))
    made = [More(1, third="y") for _ in range(document.FEW)]
    assert all(isinstance(vars(kind)["__init__"], document.LateInit) for kind in (Base, More))
    assert made == [More(1, (), "y")] * document.FEW
    assert [list(vars(each)) for each in (made[0], More(1, (), "y"))] == [["first", "second", "third"]] * 2
    assert [isinstance(vars(kind)["__init__"], document.LateInit) for kind in (Base, More)] == [True, False]
    with pytest.raises(TypeError, match="first"):
        Base()  # type: ignore[call-arg]
    assert Base(2).second == ()
