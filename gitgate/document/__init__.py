"""Document: values: frozen ones that cost little to define, and one of a document, with the place where it was read."""

from __future__ import annotations

import re
import sys
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..errors import BadDocument, Usage
from ..text import format_time, one_line, parse_duration, parse_time

# Frozen dataclasses, and tuples with names, that cost little to define.
#
# `dataclasses` writes and compiles six functions for each frozen class, 0.2 to 0.5 ms, and answering a
# gate defines sixty classes. Here only `__init__` is compiled, a sixth of the time, and only where many
# values are made; the others are the same for every value. Nor is `dataclasses` imported, which takes
# nearly as long as to start Python, and which a receiving hook can do without: its own functions find
# their fields when they look for them. `typing.NamedTuple` compiles each annotation to look whether it is
# a type, which takes half of its time, and 0.7 ms the first time in a process. Type checkers see the real
# ones.


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
    from typing import NamedTuple
else:

    def dataclass(*, frozen):
        return make_frozen if frozen else make_open

    def field(*, default=..., default_factory=..., repr=True, compare=True):
        return ValueField(None, default, default_factory, repr, compare)

    def replace(value, /, **changes):
        if not hasattr(value, "__kept_fields__"):
            import dataclasses

            return dataclasses.replace(value, **changes)
        return type(value)(**{name: getattr(value, name) for name in value.__kept_fields__} | changes)

    class NamedMeta(type):
        def __new__(meta, name, bases, space):
            if not bases:
                return super().__new__(meta, name, bases, space)
            fields = space.pop("__annotations__", {})
            defaults = [space.pop(each) for each in fields if each in space]
            module = space.pop("__module__")
            made = namedtuple(name, fields, defaults=defaults, module=module)  # noqa: PYI024 - checkers see the typed one
            for each, value in {**space, "__annotations__": fields}.items():
                setattr(made, each, value)
            return made

    class NamedTuple(metaclass=NamedMeta):
        """Tuple with named fields, like `typing.NamedTuple`: fields with annotations, defaults last, methods."""


__all__ = ["NamedTuple", "dataclass", "field", "names_of", "replace"]

Class = TypeVar("Class", bound=type)


class ValueField(NamedTuple):
    """Field of a class. An ellipsis means that it has no default, as no field here has one for its default."""

    annotation: object = None
    default: Any = ...
    factory: Any = ...
    shown: bool = True
    compared: bool = True


def make_frozen(cls: Class) -> Class:
    """Make a frozen class, as `dataclasses.dataclass(frozen=True)` does; all its fields are given to `__init__`."""
    return made(cls, FROZEN)


def make_open(cls: Class) -> Class:
    """Make a class whose fields may be set; all its fields are given to `__init__`."""
    return made(cls, OPEN)


def made(cls: Class, methods: dict[str, object]) -> Class:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it would be made up from the signature, which takes long
    fields = dict(getattr(cls, "__kept_fields__", {}))
    space = dict(vars(cls))
    for name, annotation in cls.__annotations__.items():
        value = space.get(name, ...)
        kept = fields[name] = kept_of(value, annotation)
        if value is ... or value is kept.default:
            continue
        if kept.default is not ...:
            setattr(cls, name, kept.default)
        else:
            delattr(cls, name)
    given = {
        "__init__": LateInit(cls, fields),
        "__kept_fields__": fields,
        "__match_args__": tuple(fields),
        "__dataclass_fields__": LateFields(),
    }
    for name, value in (*given.items(), *methods.items()):
        if name not in space or name in given or name == "__hash__":
            setattr(cls, name, value)
    return cls


def kept_of(value: Any, annotation: object) -> ValueField:
    """Return the field for an annotation and its value: a default, or `field` with options, ours or the real one."""
    if value is ...:
        return ValueField(annotation)
    if isinstance(value, ValueField):
        return ValueField(annotation, *value[1:])
    real = sys.modules.get("dataclasses")
    if real is not None and isinstance(value, real.Field):
        default, factory = (
            ... if each is real.MISSING else each for each in (value.default, value.default_factory)
        )
        return ValueField(annotation, default, factory, value.repr, value.compare)
    if type(value).__hash__ is None:
        raise ValueError(f"{value!r} would be shared by all: use default_factory")
    return ValueField(annotation, value)


# To compile a class's `__init__` takes as long as to make so many values without.
FEW = 20


class LateInit:
    """Function `__init__` of a class, compiled after a few values: most commands make one or two of each of thirty
    classes.
    """

    def __init__(self, owner: Any, fields: dict[str, ValueField]) -> None:
        self.owner = owner
        self.fields = fields
        self.made = 0

    def __get__(self, value: Any, cls: Any) -> object:
        self.made += 1
        if value is not None and self.made <= FEW:
            return partial(self.fill, value)
        return self.compiled().__get__(value, cls)

    def compiled(self) -> Any:
        self.owner.__init__ = compiled_init(self.fields)
        return self.owner.__init__

    def fill(self, value: Any, /, *given: object, **named: object) -> None:
        """Set the fields as the compiled `__init__` does, which raises Python's own error for a wrong call."""
        fields = self.fields
        entries = dict(zip(fields, given, strict=False))
        fits = len(given) <= len(fields) and named.keys() <= fields.keys() - entries.keys()
        for name, kept in fields.items():
            if name in named:
                entries[name] = named[name]
            elif name not in entries:
                entries[name] = kept.default if kept.factory is ... else kept.factory()
        if not fits or ... in entries.values():
            self.compiled()(value, *given, **named)
        value.__dict__.update(entries)


def compiled_init(fields: dict[str, ValueField]) -> object:
    """Return the compiled `__init__` of a class. It writes into the instance's dictionary, as nothing else can."""
    parameters, entries = [], []
    known: dict[str, object] = {}
    for name, kept in fields.items():
        parameter, entry = name, name
        if kept.default is not ...:
            known[f"default_{name}"] = kept.default
            parameter += f"=default_{name}"
        elif kept.factory is not ...:
            known[f"make_{name}"] = kept.factory
            parameter += "=..."
            entry = f"make_{name}() if {name} is ... else {name}"
        parameters.append(parameter)
        entries.append(f"{name!r}: {entry}")
    source = f"def __init__(self, {', '.join(parameters)}):\n self.__dict__.update({{{', '.join(entries)}}})"
    exec(source, known)  # noqa: S102 - as `dataclasses` does: the words are the names of a class's own fields
    return known["__init__"]


class LateFields:
    """Attribute `__dataclass_fields__`, made by the real decorator on demand; few commands need it."""

    def __get__(self, _value: object, cls: Any) -> object:
        import dataclasses

        space: dict[str, Any] = {"__module__": cls.__module__, "__doc__": "", "__annotations__": {}}
        for name, kept in cls.__kept_fields__.items():
            space["__annotations__"][name] = kept.annotation
            given = {"default": kept.default, "default_factory": kept.factory}
            known = {key: value for key, value in given.items() if value is not ...}
            space[name] = dataclasses.field(repr=kept.shown, compare=kept.compared, **known)
        real: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(type(cls.__name__, (), space))
        cls.__dataclass_params__ = real.__dataclass_params__
        cls.__dataclass_fields__ = real.__dataclass_fields__
        return cls.__dataclass_fields__


def refuse_set(_self: object, name: str, _value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def refuse_delete(_self: object, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def names_of(value: Any) -> tuple[str, ...]:
    """Return the field names of a class or a value, without the import that `dataclasses.fields` needs."""
    return tuple(getattr(value, "__kept_fields__", None) or value.__dataclass_fields__)


def compared(self: Any) -> tuple[object, ...]:
    return tuple(getattr(self, name) for name, kept in self.__kept_fields__.items() if kept.compared)


def equal(self: object, other: object) -> object:
    return compared(self) == compared(other) if type(other) is type(self) else NotImplemented


def hashed(self: object) -> int:
    return hash(compared(self))


def value_repr(self: Any) -> str:
    said = (f"{name}={getattr(self, name)!r}" for name, kept in self.__kept_fields__.items() if kept.shown)
    return f"{type(self).__qualname__}({', '.join(said)})"


OPEN: dict[str, object] = {"__eq__": equal, "__hash__": None, "__repr__": value_repr}
FROZEN: dict[str, object] = {
    "__setattr__": refuse_set,
    "__delattr__": refuse_delete,
    "__eq__": equal,
    "__hash__": hashed,
    "__repr__": value_repr,
}


# One value of a document, with the place where it was read.
#
# Whoever reads a document asks its fields for what they should be; a field that is something else raises
# an error that names the file, the line and the path, so that no reader has to carry places around.


Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
"""What a document can hold; the same values that JSON has."""


@dataclass(frozen=True)
class Limits:
    """Limits of a document. A larger one is neither read nor written."""

    size: int = 1 << 20
    depth: int = 32
    nodes: int = 20_000


LIMITS = Limits()
MOST_TEXT = LIMITS.size
MOST_SHOWN = 40


class Field:
    """Value of a document with its place. `value` holds Fields where it is a mapping or a sequence; `plain()` has no
    places.

    The path is put together only on demand: kept in every field, long keys times deep nesting times many leaves
    would take a gigabyte for a document of one megabyte.
    """

    __slots__ = ("line", "name", "parent", "source", "value")

    def __init__(
        self, value: object, source: str, path: str = "", line: int = 0, parent: Field | None = None
    ) -> None:
        """Create a field. `path` is the whole path, or with a `parent` the last step of it."""
        self.value = value
        self.source = source
        self.name = path
        self.line = line
        self.parent = parent

    def __repr__(self) -> str:
        return f"Field({self.plain()!r}, {self.source!r}, {self.path!r}, {self.line})"

    @property
    def path(self) -> str:
        """Place in the document, as in `questions[0].type`; safe to print."""
        steps = [self.name]
        above = self.parent
        while above is not None:
            steps.append(above.name)
            above = above.parent
        return "".join(reversed(steps)).removeprefix(".")

    def fail(self, expected: str, *, hint: str = "") -> NoReturn:
        """Raise BadDocument. `expected` is the whole clause: `expected a duration such as 2h; found "soon"`."""
        raise BadDocument(one_line(self.source), self.line, self.path, expected, hint=hint)

    def refuse(self, expected: str) -> NoReturn:
        """Fail with `expected …; found …`, where the second half is this value."""
        self.fail(f"expected {expected}; found {found(self.value)}")

    # Mappings and sequences

    def mapping(self) -> dict[str, Field]:
        if isinstance(self.value, dict):
            return self.value
        return self.refuse("a mapping (lines of `key: value`)")

    def keys(self) -> list[str]:
        return list(self.mapping())

    def items(self) -> list[Field]:
        if isinstance(self.value, list):
            return self.value
        return self.refuse("a list (lines that begin with `- `)")

    def get(self, key: str) -> Field | None:
        """Return the field `key`; None where it is missing or null, which mean the same in every document of ours."""
        value = self.value
        field = value.get(key) if isinstance(value, dict) else self.mapping().get(key)
        return None if field is None or field.value is None else field

    def need(self, key: str) -> Field:
        field = self.mapping().get(key)
        if field is None:
            absent = Field(None, self.source, step(key), self.line, self)
            absent.fail("expected a value; it is missing")
        if field.value is None:
            field.fail("expected a value; it is empty")
        return field

    # Scalars

    def text(self, *, most: int = MOST_TEXT, least: int = 0) -> str:
        """Return a string of `least` to `most` characters; one of blanks alone counts as empty."""
        value = self.value
        if not isinstance(value, str):
            if isinstance(value, (bool, int, float)):
                self.fail(f'expected text; found {found(value)} (in quotes it is text: "{scalar(value)}")')
            self.refuse("text")
        if len(value) > most:
            self.fail(f"expected at most {most:,} characters; found {len(value):,}")
        if least and not value.strip():
            self.fail("expected some text; it is empty")
        if len(value) < least:
            self.fail(f"expected at least {least:,} characters; found {len(value):,}")
        return value

    def integer(self, low: int, high: int) -> int:
        value = self.value
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        return self.refuse(f"a whole number from {low} to {high}")

    def number(self, low: float, high: float) -> float:
        value = self.value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        return self.refuse(f"a number from {low:g} to {high:g}")

    def boolean(self) -> bool:
        if isinstance(self.value, bool):
            return self.value
        return self.refuse("true or false")

    def one_of(self, names: Iterable[str]) -> str:
        """Return the one of `names` that this is exactly; the error names a near miss."""
        allowed = list(names)
        value = self.value
        if isinstance(value, str) and value in allowed:
            return value
        return self.fail(f"expected one of {', '.join(allowed)}; found {found(value)}{near(value, allowed)}")

    def plain(self) -> Plain:
        """Return the value without places: dict, list, str, int, float, bool or None."""
        value = self.value
        if isinstance(value, dict):
            return {key: field.plain() for key, field in value.items()}
        if isinstance(value, list):
            return [field.plain() for field in value]
        return value if value is None or isinstance(value, (str, int, float)) else str(value)


def field_of(value: object, source: str, path: str = "") -> Field:
    """Return a plain value from no file (flags, a call) as a field, so that it is checked alike, without lines."""
    top = Field(value, source, path)
    level, nodes = [top], 1
    for _ in range(LIMITS.depth + 1):
        level = [inner for field in level for inner in _opened(field)]
        nodes += len(level)
        if nodes > LIMITS.nodes:
            top.fail(f"expected at most {LIMITS.nodes:,} values; found more")
    if level:
        top.fail(f"expected at most {LIMITS.depth} levels; found more")
    return top


def _opened(field: Field) -> list[Field]:
    """Fill `field` with the fields directly within it."""
    value = field.value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            field.fail("expected keys that are text; found another")
        named = {key: Field(child, field.source, step(key), 0, field) for key, child in value.items()}
        field.value = named
        return list(named.values())
    if isinstance(value, (list, tuple)):
        listed = [Field(child, field.source, f"[{index}]", 0, field) for index, child in enumerate(value)]
        field.value = listed
        return listed
    return []


def step(key: str) -> str:
    """Return the part of a path for `key`; a key that is no plain word is shown in brackets, short and harmless."""
    if key.isascii() and len(key) <= MOST_SHOWN and key.replace("_", "a").replace("-", "a").isalnum():
        return f".{key}"
    return f'["{one_line(key[: 4 * MOST_SHOWN], MOST_SHOWN)}"]'


def scalar(value: object) -> str:
    """Return a scalar as a document spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def found(value: object) -> str:
    """Return a description of a value for the second half of an error; a long text is cut."""
    if isinstance(value, str):
        return f'"{one_line(value[: 4 * MOST_SHOWN], MOST_SHOWN)}"' if value else "an empty text"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    return scalar(value) if isinstance(value, bool) else f"the number {scalar(value)}"


def near(value: object, names: Sequence[str]) -> str:
    """Return ` (did you mean choice?)` where one of `names` is close to `value`, else an empty text."""
    meant = nearest(value, names)
    return f" (did you mean {meant}?)" if meant else ""


def nearest(value: object, names: Sequence[str], close: float = 0.6) -> str:
    """Return the one of `names` that is close to `value`, where 1 means equal; empty where none is."""
    if not isinstance(value, str) or not 0 < len(value) <= 64:
        return ""
    from difflib import get_close_matches  # 1 ms to import, and only a wrong document needs it

    lowered = {name.lower(): name for name in names}
    found = get_close_matches(value.lower(), lowered, 1, close)
    return lowered[found[0]] if found else ""


MOST_READ = 256 * 1024
DIGEST = r"[0-9a-f]{64}"
OID = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"


def text_or_empty(item: Field, name: str, most: int = 1000) -> str:
    found = item.get(name)
    return "" if found is None else found.text(most=most)


def texts(item: Field, name: str, most: int = 1000) -> tuple[str, ...]:
    found = item.get(name)
    return () if found is None else tuple(entry.text(most=most) for entry in found.items())


def one_of(item: Field, name: str, allowed: tuple[str, ...], otherwise: str) -> str:
    found = item.get(name)
    return otherwise if found is None else found.one_of(allowed)


def digest(item: Field, name: str) -> str:
    """Return a SHA-256 in hexadecimal; empty where there is none."""
    found = item.get(name)
    text = "" if found is None else found.text(most=64)
    if found is not None and not re.fullmatch(DIGEST, text):
        found.fail("expected 64 digits of a SHA-256")
    return text


def oid(item: Field, name: str) -> str | None:
    found = item.get(name)
    return None if found is None else commit_id(found)


def oids(item: Field, name: str) -> tuple[str, ...]:
    found = item.get(name)
    return () if found is None else tuple(commit_id(entry) for entry in found.items())


def commit_id(field: Field) -> str:
    text = field.text(most=64)
    return text if re.fullmatch(OID, text) else field.fail("expected a full commit id")


def moment(field: Field) -> str:
    """Return a time in the one form that compares as text: whole seconds in UTC."""
    text = field.text(most=40)
    try:
        plain = format_time(parse_time(text)) == text
    except Usage:
        plain = False
    return text if plain else field.refuse("a time in UTC such as 2030-01-31T14:05:00Z")


def duration(field: Field) -> int:
    """Return seconds; the error names the place where the value is no duration."""
    text = field.text(most=40)
    try:
        return parse_duration(text)
    except Usage as wrong:
        field.fail(wrong.message)


def mapping(item: Field, name: str) -> dict[str, Plain]:
    found = item.get(name)
    return {} if found is None else {key: field.plain() for key, field in found.mapping().items()}


def may_have(data: bytes, key: str) -> bool:
    """Return whether a document may have a field `key`, without parsing it. An escape can spell a key otherwise, and
    bytes that are not UTF-8 may be anything: only a reader can tell then.
    """
    if key.encode() in data or b"\\" in data or b"\0" in data:
        return not is_blank(data)
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def is_blank(data: bytes) -> bool:
    """Return whether a document holds nothing but blanks and comments, by any line end that some reader accepts."""
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data and all(line.strip(" \t")[:1] in ("", "#") for line in lines)
