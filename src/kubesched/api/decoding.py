"""Decodes JSON and parsed manifests to API structs, with Go's semantics of ``null``.

Go encodes a nil slice or map without ``omitempty`` as ``null``, so the API server does, too:
``"topologyKeys": null`` is what every CSI driver without topology has. Go's decoder treats ``null``
as *not set*, for a field of any type:

    a field            is absent
    a value of a map   is the zero value of its type
    an item of a list  is the zero value of its type

So structs can declare ``tuple[str, ...] = ()``, and no reader of a field has to handle None. Text
is decoded straight into the struct, as nearly all objects have no such ``null``. Only if that fails
is it decoded untyped, stripped of nulls, and converted.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, inspect

T = TypeVar("T")

#: Containers that hold items of one type.
_Sequence: Final = (inspect.VarTupleType, inspect.ListType)
_ZEROS: Final = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
    inspect.BoolType: False,
}


class ObjectDecoder(Generic[T]):
    """Decodes objects of one type from JSON; raises msgspec's exceptions."""

    def __init__(self, object_type: type[T]) -> None:
        self._object_type = object_type
        self._decode = msgspec.json.Decoder(object_type).decode

    def decode(self, text: bytes | Raw) -> T:
        """Decode one object."""
        try:
            return self._decode(text)
        except msgspec.ValidationError:
            return convert(msgspec.json.decode(text), self._object_type)


_decoders: dict[Any, ObjectDecoder[Any]] = {}


def decoder_of(object_type: type[T]) -> ObjectDecoder[T]:
    """Return the cached decoder of a type: building one costs far more than using it."""
    decoder = _decoders.get(object_type)
    if decoder is None:
        decoder = _decoders[object_type] = ObjectDecoder(object_type)
    return decoder


def convert(tree: object, object_type: type[T]) -> T:
    """Convert an untyped tree to an object; raises msgspec.ValidationError."""
    known: Any = object_type  # mypy does not take a type[T] for hashable
    return msgspec.convert(_without_nulls(tree, _type_info(known)), object_type)


@cache
def _type_info(object_type: Any) -> inspect.Type:  # noqa: ANN401 - a union is not a type[T]
    return inspect.type_info(object_type)


def _without_nulls(value: Any, kind: inspect.Type) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value with nulls read as Go reads them; values that do not fit their type stay."""
    kind = _not_null(kind)
    if isinstance(value, dict):
        if isinstance(kind, inspect.StructType):
            types = {field.encode_name: field.type for field in kind.fields}
            return {
                name: _without_nulls(each, types[name]) if name in types else each
                for name, each in value.items()
                if each is not None
            }
        if isinstance(kind, inspect.DictType):
            return {name: _item(each, kind.value_type) for name, each in value.items()}
    elif isinstance(value, list) and isinstance(kind, _Sequence):
        return [_item(each, kind.item_type) for each in value]
    return value


def _item(value: object, kind: inspect.Type) -> object:
    return _zero(kind) if value is None else _without_nulls(value, kind)


def _zero(kind: inspect.Type) -> object:
    """Return the zero value of a type, before its conversion."""
    if isinstance(kind, inspect.UnionType):
        if kind.includes_none:
            return None
        # The one union of the API is a quantity: text or a number.
        return 0
    if isinstance(kind, inspect.StructType | inspect.DictType):
        return {}
    if isinstance(kind, _Sequence):
        return []
    return _ZEROS.get(type(kind))


def _not_null(kind: inspect.Type) -> inspect.Type:
    """Return the type besides None of an optional type, else the type itself."""
    if isinstance(kind, inspect.UnionType):
        others = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        if len(others) == 1:
            return others[0]
    return kind
