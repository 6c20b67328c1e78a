"""Document: frozen dataclasses, and tuples with names, that cost little to define.

`dataclasses` writes and compiles six functions for each frozen class, 0.2 to 0.5 ms, and answering a gate defines sixty
classes. Here only `__init__` is compiled, a sixth of the time, and only where many values are made; the others are the same
for every value. Nor is `dataclasses` imported, which takes nearly as long as to start Python, and which a receiving hook can do
without: its own functions find their fields when they look for them. `typing.NamedTuple` compiles each annotation to look whether it
is a type, which takes half of its time, and 0.7 ms the first time in a process. Type checkers see the real ones.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

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
        """As `typing.NamedTuple`: fields with annotations, defaults last, methods."""


__all__ = ["NamedTuple", "dataclass", "field", "names_of", "replace"]

Class = TypeVar("Class", bound=type)


class ValueField(NamedTuple):
    """One field of a class; an ellipsis where it has no default, as none of ours is one."""

    annotation: object = None
    default: Any = ...
    factory: Any = ...
    shown: bool = True
    compared: bool = True


def make_frozen(cls: Class) -> Class:
    """As `dataclasses.dataclass(frozen=True)` does, for classes whose fields are all given to `__init__`."""
    return made(cls, FROZEN)


def make_open(cls: Class) -> Class:
    """The same for a class whose fields may be set."""
    return made(cls, OPEN)


def made(cls: Class, methods: dict[str, object]) -> Class:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it would be made up from the signature, which takes long
    fields = dict(getattr(cls, "__kept_fields__", {}))
    for name, annotation in cls.__annotations__.items():
        kept = fields[name] = kept_of(vars(cls).get(name, ...))._replace(annotation=annotation)
        if kept.default is not ...:
            setattr(cls, name, kept.default)
        elif name in vars(cls):
            delattr(cls, name)
    given = {
        "__init__": LateInit(cls, fields),
        "__kept_fields__": fields,
        "__match_args__": tuple(fields),
        "__dataclass_fields__": LateFields(),
    }
    for name, value in (*given.items(), *methods.items()):
        if name not in vars(cls) or name in given or name == "__hash__":
            setattr(cls, name, value)
    return cls


def kept_of(value: Any) -> ValueField:
    """What stands behind a field's annotation: a default, or `field` with more about it, ours or the real one."""
    if isinstance(value, ValueField):
        return value
    real = sys.modules.get("dataclasses")
    if real is not None and isinstance(value, real.Field):
        default, factory = (
            ... if each is real.MISSING else each for each in (value.default, value.default_factory)
        )
        return ValueField(None, default, factory, value.repr, value.compare)
    if type(value).__hash__ is None:
        raise ValueError(f"{value!r} would be shared by all: use default_factory")
    return ValueField(default=value)


# To compile a class's `__init__` takes as long as to make so many values without.
FEW = 20


class LateInit:
    """`__init__`, compiled when more than a few values are made: most commands make one or two of each of thirty classes."""

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
        """What the compiled one does. To that a wrong call is left, which has Python's own words for it."""
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
    """It writes where nothing else can: into the instance's own dictionary."""
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
    """`__dataclass_fields__`, made by the real decorator when one of its functions asks for it. Few commands have one ask."""

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
    """The names of its fields, of a class or of a value; `dataclasses.fields` would load that module to tell them."""
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
