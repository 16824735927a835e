"""Whatever the text of a configuration: it is accepted, or refused with one line.

Three ways to break one: values at random in the fields that there are, a good text with something
cut out or put in, and pieces of YAML and JSON in any order.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubesched.config import encoding, loading, untrusted_yaml
from kubesched.config.args import ARGS_KINDS
from kubesched.config.features import FeatureGates
from kubesched.config.schema import (
    CONFIGURATION,
    KINDS,
    Form,
    ListOf,
    MapOf,
    Message,
    Scalar,
    WireType,
)
from kubesched.errors import ConfigError

GATES = FeatureGates.of({})
DATA = Path(__file__).parent / "data"
HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def accepted_or_refused(text: str) -> None:
    """Read a text as a scheduler that starts does, to the point where it is shown again."""
    try:
        config = loading.decode(text, "file", gates=GATES)
    except ConfigError as refused:
        message = str(refused)
        assert message.startswith("file: "), message
        assert "\n" not in message
        return
    encoding.to_yaml(config)
    json.loads(encoding.to_json(config))


# --- values at random ---------------------------------------------------------------------------

NAMES = st.sampled_from(
    [*ARGS_KINDS, "DefaultBinder", "PrioritySort", "NodeName", "Mine", "*", "", "EBSLimits", "é"]
)
NUMBERS = (
    st.integers(-(2**70), 2**70)
    | st.sampled_from([0, 1, -1, 100, 101, 2**31, 2**63, -(2**63), 2**64])
    | st.floats()
)
DURATIONS = st.sampled_from(
    ["0s", "10s", "-5s", "1h30m", "999999h", "99999999999h", "1", "s", "1.5.5s", "1e9s", ".s", "µs"]
)
TEXTS = st.text(max_size=12) | NAMES | DURATIONS
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=4,
)
OF_FORM = {
    Form.STRING: TEXTS,
    Form.BOOL: st.booleans(),
    Form.INTEGER: NUMBERS,
    Form.FLOAT: NUMBERS,
    Form.DURATION: DURATIONS | NUMBERS,
    Form.BASE64: st.sampled_from(["", "YQ==", "YQ", "%%", "\n"]),
    Form.RAW: JUNK,
}


@functools.cache
def values_of(wire_type: WireType) -> st.SearchStrategy[Any]:
    """Values that mostly suit a type."""
    right: st.SearchStrategy[Any]
    match wire_type:
        case Scalar(form=form):
            right = OF_FORM[form]
        case ListOf(item=item):
            right = st.lists(st.deferred(lambda: values_of(item)), max_size=3)
        case MapOf(item=item):
            right = st.dictionaries(TEXTS, values_of(item), max_size=2)
        case Message():
            right = objects_of(wire_type)
    return st.one_of(right, right, right, JUNK)


def objects_of(message: Message) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the fields, and now and then one that there is not."""
    optional = {
        field.name: st.deferred(lambda field=field: values_of(field.type))  # type: ignore[misc]
        for field in message.fields
    }
    known = st.fixed_dictionaries({}, optional=optional)
    return known | st.builds(lambda one, more: {**one, **more}, known, st.just({"extra": 1}))


def arguments() -> st.SearchStrategy[dict[str, Any]]:
    """Entries of pluginConfig whose arguments are those of the plugin, or nearly."""
    return st.one_of(
        [
            st.fixed_dictionaries({"name": st.just(name), "args": values_of(KINDS[f"{name}Args"])})
            for name in ARGS_KINDS
        ]
    )


PROFILES = st.fixed_dictionaries(
    {"schedulerName": TEXTS, "pluginConfig": st.lists(arguments(), max_size=3)}
)


@settings(max_examples=300)
@given(objects_of(CONFIGURATION), st.lists(PROFILES, max_size=2), st.booleans())
def test_values_at_random(fields: dict[str, Any], profiles: list[Any], as_json: bool) -> None:
    tree = {**HEADER, **fields, **({"profiles": profiles} if profiles else {})}
    accepted_or_refused(json.dumps(tree) if as_json else _yaml(tree))


def _yaml(tree: object) -> str:
    try:
        return yaml.safe_dump(tree, allow_unicode=True)
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(tree)


# --- good texts, damaged ------------------------------------------------------------------------


def _good_texts() -> list[str]:
    cases = untrusted_yaml.load((DATA / "written.yaml").read_text())
    texts = [str(case[which]) for case in cases for which in ("config", "written")]
    return [*texts, *(json.dumps(untrusted_yaml.load(text)) for text in texts)]


GOOD_TEXTS = _good_texts()


PIECES = st.sampled_from(
    [*"[]{},:-?&*!|>'\"%@` \n\t#=~.0\\", "- ", ": ", "&a ", "*a", "<<: *a", "!!int ", "!!binary ",
     "---\n", "...\n", "1e999", "0x", "1" * 30, "null", "\x00", "\x85", "\ud800", "é", "\ufeff"]
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A good text, with something cut out, doubled or put in, a few times."""
    text = draw(st.sampled_from(GOOD_TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 40)))
        instead = draw(st.just("") | PIECES | st.just(text[start:end] * 2))
        text = text[:start] + instead + text[end:]
    return text


@settings(max_examples=300)
@given(damaged())
def test_good_texts_with_damage(text: str) -> None:
    accepted_or_refused(text)


# --- nothing but pieces -------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=80))
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example("{" + '"a":[' * 5_000)
@example("1" * 5_000)
@example("a: " + "9" * 5_000)
@example('{"a": ' + "9" * 5_000 + "}")
@example("a: &a [*a]")
@example("? [a]\n: b")
@example("<<: 1")
def test_pieces(text: str) -> None:
    accepted_or_refused(text)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config") / "config.yaml"


@given(content=st.binary(max_size=60))
def test_bytes(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        loading.load(file, gates=GATES)
    assert "\n" not in str(refused.value)
