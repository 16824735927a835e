"""Selectors: what they match, which are the same, and what is refused in which words.

Matches and messages in the tables were checked against k8s.io/apimachinery v0.36.4.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api import labels
from kubesched.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.labels import EVERYTHING, NOTHING, Requirement, Selector
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.errors import SelectorError

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("operator", "values", "value", "want"),
    [
        ("In", ("a", "b"), "a", True),
        ("In", ("a", "b"), "c", False),
        ("In", ("",), "", True),
        ("In", ("",), None, False),
        ("NotIn", ("a", "b"), "a", False),
        ("NotIn", ("a", "b"), "c", True),
        ("NotIn", ("a", "b"), None, True),
        ("Exists", (), "", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "", False),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Gt", ("5",), None, False),
        ("Gt", ("5",), "many", False),
        ("Gt", ("5",), "6.5", False),
        ("Gt", ("5",), " 6", False),
        ("Gt", ("5",), "1_0", False),
        ("Gt", ("5",), "٦", False),
        ("Gt", ("-5",), "-4", True),
        ("Gt", ("5",), "+6", True),
        ("Gt", ("5",), "0006", True),
        ("Gt", ("5",), "9223372036854775807", True),
        ("Gt", ("5",), "9223372036854775808", False),
        ("Gt", ("5",), "9" * 100_000, False),
        ("Gt", ("five",), "6", False),
        ("Gt", ("5", "4"), "6", False),
        ("Lt", ("5",), "4", True),
        ("Lt", ("5",), "5", False),
        ("Lt", ("5",), "-9223372036854775808", True),
        ("Lt", ("5",), None, False),
        ("Like", ("5",), "5", False),
    ],
)
def test_a_requirement_on_one_value(
    operator: str, values: tuple[str, ...], value: str | None, want: bool
) -> None:
    requirement = Requirement("key", operator, values)

    assert requirement.matches_value(value) is want
    assert requirement.matches({} if value is None else {"key": value}) is want


@pytest.mark.parametrize(
    ("text", "matching", "failing"),
    [
        ("", {}, None),
        ("a=b", {"a": "b"}, {"a": "c"}),
        ("a==b", {"a": "b"}, {}),
        ("a!=b", {}, {"a": "b"}),
        ("a=", {"a": ""}, {}),
        ("a", {"a": "x"}, {"b": "x"}),
        ("!a", {"b": "x"}, {"a": "x"}),
        ("! a", {"b": "x"}, {"a": "x"}),
        ("a in (x,y)", {"a": "y"}, {"a": "z"}),
        ("a notin (x,y)", {"a": "z"}, {"a": "y"}),
        ("a notin (x,y)", {}, {"a": "x"}),
        ("a in (x,)", {"a": ""}, {"a": "y"}),
        ("a in (,x)", {"a": ""}, {"a": "y"}),
        ("a in (x,,y)", {"a": ""}, {}),
        ("a in ()", {"a": ""}, {"a": "x"}),
        ("a>1", {"a": "2"}, {"a": "1"}),
        ("a<1", {"a": "0"}, {"a": "x"}),
        ("in in (in,notin)", {"in": "notin"}, {"in": "x"}),
        ("notin=in", {"notin": "in"}, {}),
        (" a = b ,\tc\n", {"a": "b", "c": ""}, {"a": "b"}),
        ("example.com/a=b,c", {"example.com/a": "b", "c": ""}, {"a": "b", "c": ""}),
    ],
)
def test_the_text_form(text: str, matching: dict[str, str], failing: dict[str, str] | None) -> None:
    selector = labels.parse(text)

    assert selector.matches(matching)
    assert failing is None or not selector.matches(failing)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a===b", "found '=', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "found '', expected: identifier"),
        ("a in", "found '' expected: '('"),
        ("a in (", "found '', expected: ',', ')' or identifier"),
        ("a in (x y)", "found 'y', expected: ',' or ')'"),
        ("a in (x", "found '', expected: ',' or ')'"),
        ("a in (x,=", "found '=', expected: ',', or identifier"),
        (
            "a>x",
            (
                'values[0]: Invalid value: "x": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        ("a=b!", "found '!', expected: ',' or 'end of string'"),
        ("a=b@", f'values[0][a]: Invalid value: "b@": {VALUE_RULE}'),
        ("-a", f'<nil>: Invalid value: "-a": name part {NAME_RULE}'),
        ("/a", '<nil>: Invalid value: "/a": prefix part must be non-empty'),
        (
            "a/",
            f'<nil>: Invalid value: "a/": name part must be non-empty; name part {NAME_RULE}',
        ),
        ("x" * 64, f'<nil>: Invalid value: "{"x" * 64}": name part must be no more than 63 bytes'),
    ],
)
def test_malformed_text_is_refused_in_kubernetes_words(text: str, want: str) -> None:
    outside = want.endswith(("'end of string'", "after ','"))

    with pytest.raises(SelectorError) as caught:
        labels.parse(text)

    assert str(caught.value) == (want if outside else f"unable to parse requirement: {want}")


@pytest.mark.parametrize(
    "text",
    [
        "a in (" + "x," * 200_000 + ")",
        "a in (" + ",".join(f"-{i}" for i in range(30_000)) + ")",
        ",".join(["a=b"] * 50_000),
        "(" * 1_000_000,
        "a-" * 500_000,
        "a." * 500_000 + "/x",
        "a=" + "b." * 500_000,
        "\x00" * 1000,
        "\ud800",
    ],
    ids=[
        "values",
        "bad values",
        "requirements",
        "parentheses",
        "key",
        "prefix",
        "value",
        "nul",
        "surrogate",
    ],
)
def test_hostile_text_ends_quickly(text: str) -> None:
    start = time.perf_counter()
    try:
        labels.parse(text)
    except SelectorError as error:
        message = str(error)
    else:
        message = ""

    assert time.perf_counter() - start < 5.0
    assert len(message) < 10_000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a=b,c=d", "c=d,a=b"),
        ("a=b", "a==b"),
        ("a=b", "a in (b)"),
        ("a!=b", "a notin (b)"),
        ("a in (x,y)", "a in (y,x,y)"),
        ("a=b,a=b", "a=b"),
        ("", " "),
    ],
)
def test_selectors_that_say_the_same_are_the_same(one: str, other: str) -> None:
    assert labels.parse(one) == labels.parse(other)
    assert hash(labels.parse(one)) == hash(labels.parse(other))


@pytest.mark.parametrize("other", ["a", "!a", "a!=b", "a in (b,c)", "a=c", "b=b", "a=b,c", ""])
def test_selectors_that_differ_are_not_equal(other: str) -> None:
    assert labels.parse("a=b") != labels.parse(other)


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert labels.from_label_selector(None) is NOTHING
    assert labels.from_label_selector(LabelSelector()) == EVERYTHING
    assert labels.from_match_labels(None) == EVERYTHING
    assert NOTHING != EVERYTHING
    assert not NOTHING.matches({})
    assert not NOTHING.matches({"a": "b"})
    assert EVERYTHING.matches({})
    assert EVERYTHING.matches({"a": "b"})


def test_a_label_selector_is_all_of_its_labels_and_expressions() -> None:
    selector = labels.from_label_selector(
        LabelSelector(
            match_labels={"app": "web"},
            match_expressions=(
                LabelSelectorRequirement(key="tier", operator="In", values=("a", "b")),
                LabelSelectorRequirement(key="old", operator="DoesNotExist"),
                LabelSelectorRequirement(key="app", operator="Exists"),
                LabelSelectorRequirement(key="zone", operator="NotIn", values=("z",)),
            ),
        )
    )

    assert selector == labels.parse("app=web,tier in (a,b),!old,app,zone!=z")
    assert str(selector) == "app,app=web,!old,tier in (a,b),zone!=z"
    assert selector.matches({"app": "web", "tier": "b"})
    assert not selector.matches({"app": "web", "tier": "b", "old": ""})
    assert not selector.matches({"app": "web", "tier": "b", "zone": "z"})


@pytest.mark.parametrize(
    ("key", "operator", "values", "want"),
    [
        ("a", "Gt", ("1",), '"Gt" is not a valid label selector operator'),
        ("a", "in", ("1",), '"in" is not a valid label selector operator'),
        (
            "a",
            "In",
            (),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            "a",
            "Exists",
            ("x", "y"),
            (
                'values: Invalid value: ["x","y"]: '
                "values set must be empty for exists and does not exist"
            ),
        ),
        (
            "-a",
            "In",
            ("b@",),
            (
                f'[key: Invalid value: "-a": name part {NAME_RULE}, '
                f'values[0][-a]: Invalid value: "b@": {VALUE_RULE}]'
            ),
        ),
    ],
)
def test_a_malformed_label_selector_is_refused(
    key: str, operator: str, values: tuple[str, ...], want: str
) -> None:
    expression = LabelSelectorRequirement(key=key, operator=operator, values=values)

    with pytest.raises(SelectorError) as caught:
        labels.from_label_selector(LabelSelector(match_expressions=(expression,)))

    assert str(caught.value) == want


def test_match_labels_are_checked_in_a_selector_but_not_in_a_node_selector() -> None:
    with pytest.raises(SelectorError):
        labels.from_label_selector(LabelSelector(match_labels={"a": "not a value"}))

    assert labels.from_match_labels({"a": "not a value"}).matches({"a": "not a value"})


def test_narrowing_keeps_the_canonical_order_and_nothing() -> None:
    narrowed = labels.parse("b=1").plus(Requirement("a", "In", ("2",)))

    assert narrowed == labels.parse("a=2,b=1")
    assert NOTHING.plus(Requirement("a", "Exists")) is NOTHING


def _term(
    *expressions: tuple[str, str, tuple[str, ...]],
    names: tuple[str, str, tuple[str, ...]] | None = None,
) -> NodeSelectorTerm:
    def requirement(parts: tuple[str, str, tuple[str, ...]]) -> NodeSelectorRequirement:
        return NodeSelectorRequirement(key=parts[0], operator=parts[1], values=parts[2])

    return NodeSelectorTerm(
        match_expressions=tuple(map(requirement, expressions)),
        match_fields=(requirement(names),) if names else (),
    )


@pytest.mark.parametrize(
    ("term", "node_labels", "node_name", "want"),
    [
        (_term(("cpus", "Gt", ("4",))), {"cpus": "8"}, "n", True),
        (_term(("cpus", "Gt", ("4",)), ("gpu", "Exists", ())), {"cpus": "8"}, "n", False),
        (_term(names=("metadata.name", "In", ("n",))), {}, "n", True),
        (_term(names=("metadata.name", "In", ("n",))), {}, "m", False),
        (_term(names=("metadata.name", "NotIn", ("n",))), {}, "n", False),
        (_term(names=("metadata.name", "NotIn", ("n",))), {}, "m", True),
        (_term(("a", "Exists", ()), names=("metadata.name", "In", ("n",))), {"a": ""}, "n", True),
        (_term(("a", "Exists", ()), names=("metadata.name", "In", ("n",))), {}, "n", False),
        (_term(names=("metadata.name", "In", ("n",))), {}, None, True),
    ],
)
def test_a_node_term_needs_all_of_labels_and_fields(
    term: NodeSelectorTerm, node_labels: dict[str, str], node_name: str | None, want: bool
) -> None:
    fields = {} if node_name is None else {"metadata.name": node_name}

    assert labels.node_term(term).matches(node_labels, fields) is want


@pytest.mark.parametrize(
    ("term", "want"),
    [
        (
            _term(("a", "Gt", ("x",))),
            (
                'nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "x": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        (
            _term(("a", "Foo", ())),
            (
                'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Foo": '
                'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ),
        ),
        (
            _term(names=("metadata.name", "Exists", ())),
            (
                'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Exists": '
                'supported values: "In", "NotIn"'
            ),
        ),
        (
            _term(names=("metadata.name", "In", ("n", "m"))),
            (
                'nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["n","m"]: '
                "must have one element"
            ),
        ),
    ],
)
def test_a_malformed_node_term_matches_no_node_and_says_why(
    term: NodeSelectorTerm, want: str
) -> None:
    (compiled,) = labels.node_selector_terms(NodeSelector(node_selector_terms=(term,)))

    assert compiled.errors == (want,)
    assert not compiled.matches({"a": "1"}, {"metadata.name": "n"})


def test_empty_node_terms_are_left_out_but_keep_their_place_in_messages() -> None:
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(), _term(("a", "In", ()))))

    (compiled,) = labels.node_selector_terms(selector, path="spec")

    assert compiled.errors == (
        (
            "spec.nodeSelectorTerms[1].matchExpressions[0].values: Invalid value: null: "
            "for 'in', 'notin' operators, values set can't be empty"
        ),
    )


def test_node_terms_that_say_the_same_are_the_same() -> None:
    one = labels.node_term(_term(("a", "In", ("x", "y")), ("b", "Exists", ())))
    other = labels.node_term(_term(("b", "Exists", ()), ("a", "In", ("y", "x"))))

    assert one == other
    assert hash(one) == hash(other)


keys = st.sampled_from(["a", "b", "in", "example.com/c"])
values = st.sampled_from(["", "1", "2", "x", "notin"])
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        Requirement,
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Requirement, keys, st.sampled_from(["Gt", "Lt"]), st.sampled_from([("1",), ("2",)])),
)
label_sets = st.dictionaries(keys, values, max_size=4)


@given(st.lists(requirements, max_size=4), label_sets)
def test_a_selector_matches_what_all_of_its_requirements_match(
    parts: list[Requirement], have: dict[str, str]
) -> None:
    want = all(part.matches_value(have.get(part.key)) for part in parts)

    assert Selector.of(parts).matches(have) is want
    assert Selector.of(reversed(parts)) == Selector.of(parts)


@given(st.lists(requirements, max_size=4))
def test_a_selector_survives_being_written_and_read(parts: list[Requirement]) -> None:
    selector = Selector.of(parts)

    assert labels.parse(str(selector)) == selector


@given(st.text(alphabet="ab=!(),<>in \t1-/.", max_size=30))
def test_any_text_is_a_selector_or_a_selector_error(text: str) -> None:
    try:
        selector = labels.parse(text)
    except SelectorError:
        return
    assert labels.parse(str(selector)) == selector
