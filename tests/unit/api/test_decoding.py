"""Objects as Go's encoder writes them: ``null`` is "not set", in every field of every kind.

The kinds are found, not listed: every struct of the package with an ``ObjectMeta``. Of each, an
object with all fields set is generated, and each of its fields, map values and list items is set
to null in turn.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
import pytest
from msgspec import Struct, inspect

import kubesched
from kubesched.api.core import Pod, ResourceRequirements
from kubesched.api.decoding import convert, decoder_of
from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import CSINode
from kubesched.client.listing import decode_list
from kubesched.client.watch import WatchDecoder, WatchEvent
from kubesched.kinds import KINDS as TABLE

Path = tuple[str | int, ...]


def _modules() -> Iterator[str]:
    for found in pkgutil.walk_packages(kubesched.__path__, "kubesched."):
        # Needs Dask, which is an extra.
        if not found.name.endswith((".__main__", "dask_sweep")):
            yield found.name


def _structs(of: type[Struct]) -> Iterator[type[Struct]]:
    for each in of.__subclasses__():
        yield each
        yield from _structs(each)


def _kinds() -> list[type[Struct]]:
    for name in _modules():
        importlib.import_module(name)
    found = {
        each
        for each in _structs(Struct)
        if each.__module__.startswith("kubesched.")
        and "metadata" in each.__struct_fields__
        # What we write, and never read, says its kind.
        and "kind" not in each.__struct_fields__
        and get_type_hints(each)["metadata"] is ObjectMeta
    }
    return sorted(found, key=lambda each: f"{each.__name__} {each.__module__}")


KINDS = _kinds()


def _sample(kind: inspect.Type) -> Any:
    """Return a JSON value of a type in which nothing is left out."""
    match kind:
        case inspect.UnionType():
            return _sample(kind.types[0])
        case inspect.StructType():
            return {field.encode_name: _sample(field.type) for field in kind.fields}
        case inspect.DictType():
            return {"key": _sample(kind.value_type)}
        case inspect.VarTupleType() | inspect.ListType():
            return [_sample(kind.item_type)]
    scalars = {
        inspect.StrType: "7",
        inspect.IntType: 7,
        inspect.BoolType: True,
        inspect.AnyType: {"any": ["thing"]},
    }
    return scalars[type(kind)]


def _fields(kind: inspect.Type, at: Path = ()) -> Iterator[Path]:
    """Return the paths of all fields of structs."""
    match kind:
        case inspect.UnionType():
            for each in kind.types:
                yield from _fields(each, at)
        case inspect.StructType():
            for field in kind.fields:
                yield (*at, field.encode_name)
                yield from _fields(field.type, (*at, field.encode_name))
        case inspect.DictType():
            yield from _fields(kind.value_type, (*at, "key"))
        case inspect.VarTupleType() | inspect.ListType():
            yield from _fields(kind.item_type, (*at, 0))


def _items(kind: inspect.Type, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Return the paths of all map values and list items, with what Go makes of null there."""
    match kind:
        case inspect.UnionType():
            for each in kind.types:
                yield from _items(each, at)
        case inspect.StructType():
            for field in kind.fields:
                yield from _items(field.type, (*at, field.encode_name))
        case inspect.DictType():
            yield (*at, "key"), _zero(kind.value_type)
            yield from _items(kind.value_type, (*at, "key"))
        case inspect.VarTupleType() | inspect.ListType():
            yield (*at, 0), _zero(kind.item_type)
            yield from _items(kind.item_type, (*at, 0))


def _zero(kind: inspect.Type) -> Any:
    match kind:
        case inspect.StrType():
            return ""
        case inspect.StructType():
            return {}
        case inspect.IntType():
            return 0
        case inspect.BoolType():
            return False
        case inspect.AnyType() | inspect.UnionType(includes_none=True):
            return None
        case inspect.UnionType():
            return 0  # a quantity
    raise AssertionError(f"items of type {kind}: say here what Go's zero value is")


def _changed(tree: Any, path: Path, value: Any = None, *, remove: bool = False) -> Any:
    tree = copy.deepcopy(tree)
    parent = tree
    for step in path[:-1]:
        parent = parent[step]
    if remove:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return tree


def _read_in_every_way(kind: Any, tree: Any) -> Any:
    """Return what is read of an object; all ways to it must agree."""
    text = msgspec.json.encode(tree)
    got = decoder_of(kind).decode(text)
    (page,) = decode_list(b'{"items":[' + text + b"]}").pages(kind, first=True)
    assert (page.items, page.bad) == ([got], [])
    line = b'{"type":"MODIFIED","object":' + text + b"}\n"
    assert list(WatchDecoder(kind).feed(line)) == [WatchEvent("MODIFIED", got)]
    assert convert(tree, kind) == got
    return got


def test_the_kinds_that_are_found_include_all_that_are_known_to_be_read() -> None:
    assert {kind.type for kind in TABLE.values()} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
class TestEveryKind:
    def test_null_in_any_field_is_as_if_it_were_absent(self, kind: Any) -> None:
        info = inspect.type_info(kind)
        whole = _sample(info)
        for path in _fields(info):
            absent = _changed(whole, path, remove=True)
            assert _read_in_every_way(kind, _changed(whole, path)) == _read_in_every_way(
                kind, absent
            ), path

    def test_null_in_a_map_or_a_list_is_the_zero_value(self, kind: Any) -> None:
        info = inspect.type_info(kind)
        whole = _sample(info)
        for path, zero in _items(info):
            assert _read_in_every_way(kind, _changed(whole, path)) == _read_in_every_way(
                kind, _changed(whole, path, zero)
            ), path

    def test_all_fields_null_at_once_is_an_empty_object(self, kind: Any) -> None:
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        nulls = {field.encode_name: None for field in info.fields}
        assert _read_in_every_way(kind, nulls) == kind()

    def test_what_is_no_null_is_still_checked(self, kind: Any) -> None:
        with pytest.raises(msgspec.ValidationError, match=r"\$\.metadata\.name"):
            decoder_of(kind).decode(b'{"metadata":{"name":7,"labels":null}}')


def test_a_driver_without_topology_is_read_with_its_limit() -> None:
    text = b"""{"metadata":{"name":"n1","creationTimestamp":null},"spec":{"drivers":[
        {"name":"d","nodeID":"n1","topologyKeys":null,"allocatable":{"count":2}}]}}"""
    (driver,) = decoder_of(CSINode).decode(text).spec.drivers
    assert (driver.topology_keys, driver.allocatable and driver.allocatable.count) == ((), 2)


def test_a_quantity_that_is_null_is_zero() -> None:
    read = decoder_of(ResourceRequirements).decode(b'{"requests":{"cpu":null},"claims":null}')
    assert read.requests == {"cpu": 0}


def test_unknown_fields_may_be_anything() -> None:
    text = b'{"spec":{"hostNetwork":null,"of":{"the":[null,{"future":null}]}}}'
    assert decoder_of(Pod).decode(text) == Pod()


def test_null_in_place_of_an_object_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decoder_of(Pod).decode(b"null")


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        decoder_of(Pod).decode(b'{"spec":null')
