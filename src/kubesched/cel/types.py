"""Static types of expressions, and how they are spelled in error texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final


class Kind(Enum):
    """The general category of a type."""

    DYN = auto()
    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    ERROR = auto()
    INT = auto()
    LIST = auto()
    MAP = auto()
    NULL = auto()
    OPAQUE = auto()
    STRING = auto()
    STRUCT = auto()
    TIMESTAMP = auto()
    TYPE = auto()
    PARAM = auto()
    UINT = auto()


@dataclass(frozen=True, slots=True)
class Type:
    """A type; ``name`` is what ``type()`` of a value of it is called."""

    kind: Kind
    name: str
    parameters: tuple[Type, ...] = ()
    #: how many types it is made of; a few bindings can make one that cannot be written down
    size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(part.size for part in self.parameters))

    def __str__(self) -> str:
        """Spell the type as upstream's errors do."""
        special = _SPELLED.get(self.kind)
        if special is not None:
            return special
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def declared(self) -> str:
        """The type as a compiler that refuses it spells it."""
        if self.kind is Kind.PARAM:
            return f"<{self.name}>"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(part.declared for part in self.parameters)})"

    @property
    def is_dyn_or_error(self) -> bool:
        """Whether anything can be done with a value of the type, as far as can be known."""
        return self.kind is Kind.DYN or self.kind is Kind.ERROR


_SPELLED: Final = {
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}

DYN: Final = Type(Kind.DYN, "dyn")
BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "google.protobuf.Duration")
ERROR: Final = Type(Kind.ERROR, "error")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null_type")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE: Final = Type(Kind.TYPE, "type")
UINT: Final = Type(Kind.UINT, "uint")


def list_of(element: Type) -> Type:
    """Return the type of lists of elements."""
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optional values."""
    return Type(Kind.OPAQUE, "optional_type", (value,))


def type_of(param: Type) -> Type:
    """Return the type of a type."""
    return Type(Kind.TYPE, "type", (param,))


def opaque(name: str) -> Type:
    """Return a type without fields, such as an IP address."""
    return Type(Kind.OPAQUE, name)


def struct(name: str) -> Type:
    """Return a type of objects, such as a quantity."""
    return Type(Kind.STRUCT, name)


def param(name: str) -> Type:
    """Return a type variable of a function signature."""
    return Type(Kind.PARAM, name)


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
OPTIONAL: Final = optional_of(DYN)
QUANTITY: Final = struct("kubernetes.Quantity")
SEMVER: Final = struct("kubernetes.Semver")
URL: Final = struct("kubernetes.URL")
FORMAT: Final = struct("kubernetes.NamedFormat")
IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")
DEVICE: Final = struct("kubernetes.DRADevice")


def unwrapped(type_: Type) -> tuple[Type, bool]:
    """Return what an optional type is of, and whether it is one."""
    if type_.kind is Kind.OPAQUE and type_.name == "optional_type":
        return type_.parameters[0], True
    return type_, False
