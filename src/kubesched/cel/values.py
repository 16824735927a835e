"""Values of CEL at run time.

    null      None            string     str            timestamp   Timestamp
    bool      bool            bytes      bytes          duration    Duration
    int       int             list       list, Rope     optional    Optional
    uint      Uint            map        Map            type        types.Type
    double    float           error      Err            objects     subclasses of Object

An error is a value too: ``false && error`` is false, so an error must be carried until it is known
whether it matters. Functions return an ``Err`` and never raise, with one exception: ``Aborted``
ends the evaluation for good, because it costs too much, or where upstream's interpreter panics.

Values are immutable, but for ``Accumulator`` lists: see there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from kubesched.cel import types
from kubesched.cel.types import Kind, Type

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1

#: Lists up to this size are copied when they are joined; longer ones are shared.
_COPIED_SIZE: Final = 1000

Value = Any


class Uint(int):
    """An unsigned integer; a class of its own, because ``1u`` and ``1`` have different types."""

    __slots__ = ()


class Err:
    """An error that an expression evaluates to."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return f"Err({self.message!r})"


NO_SUCH_OVERLOAD: Final = Err("no such overload")


class Aborted(Exception):  # noqa: N818 - it ends an evaluation, as StopIteration ends a loop
    """The evaluation ends here, with this error, whatever ``||`` would make of it."""


class CostLimitExceeded(Aborted):
    """The evaluation costs more than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Object:
    """A value of a library's type: a quantity, a version, an address."""

    __slots__ = ()
    type: ClassVar[Type]

    def equals(self, other: Value) -> Value:
        """Whether both are equal; an error if they cannot be compared."""
        raise NotImplementedError


class Timestamp:
    """A point in time: nanoseconds since the epoch, and the offset it was written with."""

    __slots__ = ("nanos", "offset_seconds")

    def __init__(self, nanos: int, offset_seconds: int = 0) -> None:
        self.nanos = nanos
        self.offset_seconds = offset_seconds


class CelDuration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos


class Optional:
    """A value that may be absent."""

    __slots__ = ("has_value", "value")

    def __init__(self, value: Value, *, has_value: bool = True) -> None:
        self.value = value
        self.has_value = has_value


NONE: Final = Optional(None, has_value=False)


class Joined(list[Value]):
    """A list that ``+`` made. Equality treats it differently: see ``equality.py``."""

    __slots__ = ()


class Accumulator(list[Value]):
    """The empty list that a comprehension starts with, or that ``cel.bind`` binds.

    Upstream adds to it in place, which an expression can observe:
    ``cel.bind(x, [], (x + [1]).size() == x.size())`` is true.
    """

    __slots__ = ()


class Rope:
    """A long list that ``+`` made, which shares its parts: doubling a list must stay cheap."""

    __slots__ = ("_size", "left", "right", "split")

    def __init__(self, left: ListValue, right: ListValue) -> None:
        self.left, self.right = left, right
        self.split = len(left)
        self._size = len(left) + len(right)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Value:
        part: ListValue = self
        while isinstance(part, Rope):
            if index < part.split:
                part = part.left
            else:
                index -= part.split
                part = part.right
        return part[index]

    def __iter__(self) -> Iterator[Value]:
        pending: list[ListValue] = [self]
        while pending:
            part = pending.pop()
            if isinstance(part, Rope):
                pending += (part.right, part.left)
            else:
                yield from part


ListValue = list[Value] | Rope


def joined(left: ListValue, right: ListValue) -> ListValue:
    """Return the elements of both lists."""
    if type(left) is Accumulator:
        left.extend(right)
        return left
    if not len(left):
        return right
    if not len(right):
        return left
    if len(left) + len(right) > _COPIED_SIZE:
        return Rope(left, right)
    return Joined([*left, *right])


class Map:
    """A map. Keys of different types are different keys, but numbers are found by their value."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Value, Value]] = ()) -> None:
        self._entries = {_identity(key): (key, value) for key, value in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Value]:
        return (key for key, _ in self._entries.values())

    def items(self) -> Iterator[tuple[Value, Value]]:
        """Iterate over keys and values."""
        return iter(self._entries.values())

    def find(self, key: Value) -> tuple[Value, bool]:
        """Return the value of a key as ``m[k]`` sees it, and whether there is one."""
        return self.look_up(key)

    def look_up(self, key: Value) -> tuple[Value, bool]:
        """Return the value of a key, and whether there is one."""
        if not self._entries:
            return None, False
        found = self._entries.get(_identity(key))
        if found is None:
            for other in _same_number(key):
                found = self._entries.get(_identity(other))
                if found is not None:
                    break
        return (None, False) if found is None else (found[1], True)

    def inserted(self, key: Value, value: Value) -> Map | None:
        """Return a map with one entry more, or None if the key is there."""
        if self.look_up(key)[1]:
            return None
        result = Map()
        result._entries = {**self._entries, _identity(key): (key, value)}
        return result


class AccumulatorMap(Map):
    """The empty map that a comprehension starts with, and adds to in place."""

    __slots__ = ()

    def insert(self, key: Value, value: Value) -> bool:
        """Add an entry; False if the key is there."""
        if self.look_up(key)[1]:
            return False
        self._entries[_identity(key)] = (key, value)
        return True


class StringMap(Map):
    """A map with strings as keys, straight from a dictionary."""

    __slots__ = ("strings",)

    def __init__(self, strings: dict[str, Value]) -> None:
        self.strings = strings

    def __len__(self) -> int:
        return len(self.strings)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.strings)

    def items(self) -> Iterator[tuple[Value, Value]]:
        """Iterate over keys and values."""
        return iter(self.strings.items())

    def look_up(self, key: Value) -> tuple[Value, bool]:
        """Return the value of a key, and whether there is one."""
        if type(key) is str and key in self.strings:
            return self.strings[key], True
        return None, False

    def inserted(self, key: Value, value: Value) -> Map | None:
        """Return a map with one entry more, or None if the key is there."""
        return Map(self.items()).inserted(key, value)


EMPTY_MAP: Final = StringMap({})


class DefaultMap(StringMap):
    """Attributes or capacities by domain: a domain that a device does not have is empty.

    Only ``m[k]`` sees that; ``k in m``, ``size(m)`` and comprehensions do not.
    """

    __slots__ = ()

    def find(self, key: Value) -> tuple[Value, bool]:
        """Return the value of a key as ``m[k]`` sees it."""
        value, found = self.look_up(key)
        return (value, True) if found else (EMPTY_MAP, True)


def type_of(value: Value) -> Type:
    """Return the run-time type of a value."""
    found = _TYPES.get(type(value))
    return value.type if found is None else found


def is_list(value: Value) -> bool:
    """Whether a value is a list."""
    return isinstance(value, list | Rope)


def size_of(value: Value) -> int | None:
    """Return the size of a string, bytes, list or map; None of anything else."""
    if type(value) is str or isinstance(value, bytes | list | Rope | Map):
        return len(value)
    size: int | None = getattr(value, "size", None)
    return size


def _identity(key: Value) -> Value:
    """Return a dictionary key that differs if type or value differ."""
    kind = type(key)
    if kind is str or kind is int:
        return key
    unhashable = UNHASHABLE.get(type_of(key).name)
    if unhashable is not None:
        # Upstream's interpreter panics.
        raise Aborted(f"internal error: runtime error: hash of unhashable type {unhashable}")
    if isinstance(key, list | Rope | Map | Object | Optional | Timestamp | CelDuration):
        return id(key), _Held(key)
    return kind, key


#: Values of these types cannot be keys of upstream's maps, nor be looked up in them.
UNHASHABLE: Final = {"bytes": "types.Bytes", "kubernetes.Semver": "cel.Semver"}


class _Held:
    """Keeps a value alive as long as its identity is used as a key."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _same_number(key: Value) -> Iterator[Value]:
    """Yield the numbers of other types under which a key is looked up as well."""
    kind = type(key)
    if kind is int:
        if key >= 0:
            yield Uint(key)
    elif kind is Uint:
        if key <= INT_MAX:
            yield int(key)
    elif kind is float and key.is_integer():
        if INT_MIN <= key < 2.0**63:
            yield int(key)
        if 0 <= key < 2.0**64:
            yield Uint(int(key))


_TYPES: Final[dict[type, Type]] = {
    type(None): types.NULL,
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    list: types.LIST,
    Joined: types.LIST,
    Accumulator: types.LIST,
    Rope: types.LIST,
    Map: types.MAP,
    AccumulatorMap: types.MAP,
    StringMap: types.MAP,
    DefaultMap: types.MAP,
    Timestamp: types.TIMESTAMP,
    CelDuration: types.DURATION,
    Optional: types.OPTIONAL,
    Type: types.TYPE,
    Err: types.ERROR,
}

#: The classes that values of each kind of type have; libraries' objects are not among them.
CLASSES: Final[dict[Kind, frozenset[type]]] = {
    kind: frozenset(class_ for class_, type_ in _TYPES.items() if type_.kind is kind)
    for kind in {type_.kind for type_ in _TYPES.values()} - {Kind.OPAQUE}
}
