"""Static types and overloads."""

from __future__ import annotations

import pytest

from kubesched.cel.checker import check
from kubesched.cel.parser import parse
from kubesched.cel.source import CelSource
from kubesched.cel.syntax import Call


def checked(text: str) -> tuple[str, CelSource]:
    source = CelSource(text)
    tree = parse(source)
    assert tree is not None
    return str(check(tree, source)), source


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1 + 2", "int"),
        ("[1]", "list(int)"),
        ("{'a': 1.0}", "map(string, double)"),
        ("[]", "list(dyn)"),
        ("[1, 'a']", "list(dyn)"),
        ("dyn(1)", "dyn"),
        ("device", "kubernetes.DRADevice"),
        ("device.attributes['d'].x", "dyn"),
        ("device.capacity['d'].x", "kubernetes.Quantity"),
        ("device.attributes[?'d']", "optional_type(map(string, dyn))"),
        ("[1].map(x, string(x))", "list(string)"),
        ("cel.bind(x, 1, x + x)", "int"),
        ("optional.of(1).orValue(2)", "int"),
        ("type(1)", "type(int)"),
        ("google.protobuf.Timestamp", "type(timestamp)"),
        ("true ? quantity('1') : null", "kubernetes.Quantity"),
        ("{'a': 1}.transformMap(k, v, [v])", "map(string, list(int))"),
    ],
)
def test_types(text: str, want: str) -> None:
    found, source = checked(text)

    assert not source.has_errors, source.display()
    assert found == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("foo", "1:1: undeclared reference to 'foo' (in container '')"),
        ("foo()", "1:4: undeclared reference to 'foo' (in container '')"),
        ("device.foo", "1:7: undefined field 'foo'"),
        ("'a'.foo", "1:4: type 'string' does not support field selection"),
        ("1 + 'a'", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("'a'.size(1)", "1:9: found no matching overload for 'size' applied to 'string.(int)'"),
        ("1 && true", "1:1: expected type 'bool' but found 'int'"),
        ("1.all(x, true)", "1:1: expression of type 'int' cannot be range of a comprehension"),
        ("[?1]", "1:3: expected type 'optional_type(int)' but found 'int'"),
        ("Foo{}", "1:4: undeclared reference to 'Foo' (in container '')"),
    ],
)
def test_errors(text: str, want: str) -> None:
    _, source = checked(text)

    assert source.display().startswith(f"ERROR: <input>:{want}")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1 < 2", ("less_int64",)),
        ("dyn(1) < 2", ("less_int64", "less_uint64_int64", "less_double_int64")),
        ("dyn('a').startsWith('a')", ("starts_with_string",)),
        ("1 in [1]", ("in_list",)),
        ("1 in dyn([1])", ("in_list", "in_map")),
    ],
)
def test_overloads_that_may_apply(text: str, want: tuple[str, ...]) -> None:
    source = CelSource(text)
    tree = parse(source)
    assert isinstance(tree, Call)
    check(tree, source)

    assert tree.overloads == want
