"""Selectors say what Kubernetes' own environment says: answers, errors, costs, refusals."""

from __future__ import annotations

import pytest

from kubesched.cel import CelDevice, compile_selector
from kubesched.cel.answers import as_bool
from kubesched.cel.selector import CelSelector
from kubesched.cel.values import Aborted, Err, Value
from kubesched.errors import CelError, CelRuntimeError

from .vectors import Vector, read

FILES = ["expressions.jsonl", "random_expressions.jsonl"]


def outcome(selector: CelSelector, device: CelDevice) -> tuple[Value, int | None]:
    """The answer, or the text of the error, and the cost."""
    try:
        value, cost = selector.run(device)
    except Aborted as reason:
        return str(reason), None
    answer = as_bool(value)
    return (answer.message if isinstance(answer, Err) else answer), cost


def difference(vector: Vector, devices: list[CelDevice]) -> str | None:
    """What differs from upstream, or None."""
    try:
        selector = compile_selector(vector.expression)
    except CelError as error:
        return None if str(error) == vector.refused else f"refused: {error}"
    if vector.refused is not None:
        return f"accepted, not refused: {vector.refused}"
    outcomes = [outcome(selector, device) for device in devices]
    answers, costs = [it[0] for it in outcomes], [it[1] for it in outcomes]
    if answers != vector.answers:
        return f"answers {answers}, not {vector.answers}"
    if vector.costs is not None and costs != vector.costs:
        return f"costs {costs}, not {vector.costs}"
    return None


@pytest.mark.parametrize("file", FILES)
def test_answers_errors_and_costs_are_upstreams(file: str) -> None:
    devices, vectors = read(file)

    differences = {
        vector.expression: found
        for vector in vectors
        if (found := difference(vector, devices)) is not None
    }

    assert len(vectors) > 900
    assert not differences


def test_an_error_is_raised_with_its_text() -> None:
    selector = compile_selector('device.attributes["gpu.example.com"].model == "a100"')

    with pytest.raises(CelRuntimeError, match=r"^no such key: model$"):
        selector.matches(CelDevice("gpu.example.com"))


def test_a_domain_that_a_device_does_not_have_is_empty() -> None:
    selector = compile_selector('!("model" in device.attributes["other.example.com"])')

    assert selector.matches(CelDevice("gpu.example.com", {"model": "a100"}))


def test_names_without_a_domain_are_in_the_drivers() -> None:
    device = CelDevice("gpu.example.com", {"model": "a100", "other.example.com/model": "b"})

    assert compile_selector('device.attributes["gpu.example.com"].model == "a100"').matches(device)
    assert compile_selector('device.attributes["other.example.com"].model == "b"').matches(device)


def test_an_expression_must_be_a_bool_as_far_as_can_be_known() -> None:
    with pytest.raises(CelError, match=r"^must evaluate to bool or the unknown type, not string$"):
        compile_selector("device.driver")


def test_a_cost_limit_can_be_set() -> None:
    selector = CelSelector("[1, 2, 3].all(x, x > 0)", cost_limit=5)

    with pytest.raises(CelRuntimeError, match="operation cancelled: actual cost limit exceeded"):
        selector.matches(CelDevice("x"))


def bound(count: int, first: str, step: str, last: str) -> str:
    """``v0 = first``, ``v1 = step(v0)`` and so on, then ``last`` of the last."""
    text = last.replace("V", f"v{count}")
    for index in range(count, 0, -1):
        text = f"cel.bind(v{index}, {step.replace('P', f'v{index - 1}')}, {text})"
    return f"cel.bind(v0, {first}, {text})"


LIMIT = "operation cancelled: actual cost limit exceeded"
LONG = ("lists.range(1000)", "P + P")


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        (bound(30, *LONG, "V.size() > 0"), True),
        (bound(30, *LONG, "V[5] == 5"), True),
        (bound(30, *LONG, "V == V"), LIMIT),
        (bound(30, *LONG, "[V, V] == [V, V]"), LIMIT),
        (bound(30, *LONG, "-1 in V"), LIMIT),
        (bound(30, *LONG, "V.all(x, true)"), LIMIT),
        (bound(30, *LONG, "[V].flatten().size() == 1"), LIMIT),
        (bound(30, *LONG, "V.slice(0, 100000000).size() == 1"), LIMIT),
        (bound(30, *LONG, "V.reverse().size() == 1"), LIMIT),
        (bound(30, *LONG, "[V].includes(1)"), LIMIT),
        (bound(40, '"aaaaaaaaaa"', "P + P", "V.size() == 1"), LIMIT),
        (bound(8, '"aaaaaaaaaa"', f'P.replace("a", "{"a" * 60}")', "V.size() == 1"), LIMIT),
        (bound(8, '"a"', f'"{"%s" * 20}".format([{"P," * 20}])', "V.size() == 1"), LIMIT),
        ("lists.range(100000).distinct().size() == 1", LIMIT),
        ("lists.range(1000).all(x, lists.range(1000).all(y, x >= 0 && y >= 0))", LIMIT),
        (f'"{"x" * 5000}".matches("(x+x+)+y")', False),
        (f'quantity("{"9" * 50000}").compareTo(quantity("1")) == 1', True),
        ("(" * 249 + "true" + ")" * 249, True),
        ("!" * 9001 + "true", False),
        ("(" * 240 + "true" + " && true)" * 240, True),
        ("true ? true : " * 240 + "true", True),
    ],
    ids=lambda value: str(value)[:40],
)
def test_hostile_expressions_end(expression: str, want: bool | str) -> None:
    assert outcome(compile_selector(expression), CelDevice("x"))[0] == want


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("(" * 250 + "true" + ")" * 250, "expression recursion limit exceeded: 250"),
        ("x" + ".a" * 260, "max recursion depth exceeded"),
        ('"' + "a" * 100_001 + '" == ""', "expression code point size exceeds limit"),
        ("9" * 90_000 + " == 1", "invalid int literal"),
        (bound(30, "1", "{P: P}", "V == V"), "type of the expression nests too deeply"),
        ("optional.of(1)" + ".optMap(x, x)" * 30 + ".hasValue()", "doubles an expression"),
        ('"x".matches("' + "(.{1000})" * 900 + '")', "invalid matches argument"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_hostile_expressions_are_refused(expression: str, want: str) -> None:
    with pytest.raises(CelError, match=want):
        compile_selector(expression)
