"""Core: frozen dataclasses that cost little to define.

`dataclasses` writes and compiles six functions for each frozen class, 0.2 to 0.5 ms, and answering a gate defines forty
classes. Here only `__init__` is compiled, a sixth of the time; the others are the same for every value. Type checkers see
the real decorator; fields, `replace` and `asdict` are the real ones.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen):
        return make_frozen if frozen else dataclasses.dataclass


__all__ = ["dataclass"]

Class = TypeVar("Class", bound=type)


def make_frozen(cls: Class) -> Class:
    """As `dataclasses.dataclass(frozen=True)` does, for classes whose fields are all compared and given to `__init__`."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it is made up from the signature, which takes long
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    init = compiled_init(dataclasses.fields(cls))
    for name, method in (("__init__", init), *SHARED.items()):
        if name not in vars(cls) or name in ("__init__", "__hash__"):
            setattr(cls, name, method)
    return cls


def compiled_init(fields: tuple[dataclasses.Field[object], ...]) -> object:
    """It writes where nothing else can: into the instance's own dictionary."""
    parameters, entries = [], []
    known: dict[str, object] = {"MISSING": dataclasses.MISSING}
    for field in fields:
        parameter, entry = field.name, field.name
        if field.default is not dataclasses.MISSING:
            known[f"default_{field.name}"] = field.default
            parameter += f"=default_{field.name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"make_{field.name}"] = field.default_factory
            parameter += "=MISSING"
            entry = f"make_{field.name}() if {field.name} is MISSING else {field.name}"
        parameters.append(parameter)
        entries.append(f"{field.name!r}: {entry}")
    source = f"def __init__(self, {', '.join(parameters)}):\n self.__dict__.update({{{', '.join(entries)}}})"
    exec(source, known)  # noqa: S102 - as `dataclasses` does: the words are the names of a class's own fields
    return known["__init__"]


def refuse_set(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def refuse_delete(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def equal(self: object, other: object) -> object:
    return vars(self) == vars(other) if type(other) is type(self) else NotImplemented


def hashed(self: object) -> int:
    return hash(tuple(vars(self).values()))


def shown(self: object) -> str:
    said = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)  # type: ignore[arg-type]
    return f"{type(self).__qualname__}({', '.join(said)})"


SHARED = {
    "__setattr__": refuse_set,
    "__delattr__": refuse_delete,
    "__eq__": equal,
    "__hash__": hashed,
    "__repr__": shown,
}
