"""What is written to extenders, literally, and what is understood of their answers."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from kubesched.errors import ExtenderError
from kubesched.scheduler.extender_wire import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderPreemptionArgs,
    FilterAnswer,
    FullVictims,
    MetaPod,
    MetaVictims,
    encode,
    node_list,
    read_binding_answer,
    read_filter_answer,
    read_preemption_answer,
    read_priorities,
)

# Objects as encoding/json writes v1.Pod and v1.Node with nothing but a name.
POD = b'{"metadata":{"name":"podname"},"spec":{"containers":null},"status":{}}'
NODE = (
    b'{"metadata":{"name":"nodename"},"spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":'
    b'{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"",'
    b'"osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"",'
    b'"operatingSystem":"","architecture":""}}}'
)


# --- requests, byte by byte as Go writes them ---------------------------------------------------


def test_nodes_are_sent_whole_and_names_are_null() -> None:
    body = encode(ExtenderArgs(pod=Raw(POD), nodes=node_list([NODE, NODE])))
    assert body == (
        b'{"Pod":' + POD + b',"Nodes":{"metadata":{},"items":['
        + NODE + b"," + NODE + b']},"NodeNames":null}'
    )  # fmt: skip


def test_names_are_sent_and_nodes_are_null() -> None:
    body = encode(ExtenderArgs(pod=Raw(POD), node_names=["node1", "node2"]))
    assert body == b'{"Pod":' + POD + b',"Nodes":null,"NodeNames":["node1","node2"]}'


def test_a_list_of_no_nodes_is_null_as_in_go() -> None:
    body = encode(ExtenderArgs(pod=Raw(POD), nodes=node_list([])))
    assert body == b'{"Pod":' + POD + b',"Nodes":{"metadata":{},"items":null},"NodeNames":null}'


def test_objects_are_put_in_as_they_are() -> None:
    odd = b'{ "metadata" : {"name":"x"}, "unknown": [1.0, 1e3, "\\u00e4"] }'
    assert odd in encode(ExtenderArgs(pod=Raw(odd), nodes=node_list([odd])))


def test_a_binding_request() -> None:
    arguments = ExtenderBindingArgs(
        pod_name="mypodname", pod_namespace="mypodnamespace", pod_uid="mypoduid", node="mynode"
    )
    assert encode(arguments) == (
        b'{"PodName":"mypodname","PodNamespace":"mypodnamespace","PodUID":"mypoduid",'
        b'"Node":"mynode"}'
    )


def test_a_preemption_request_with_whole_pods() -> None:
    victims = {"foo": FullVictims(pods=[Raw(POD)], num_pdb_violations=1)}
    assert encode(ExtenderPreemptionArgs(pod=Raw(POD), node_name_to_victims=victims)) == (
        b'{"Pod":' + POD + b',"NodeNameToVictims":{"foo":{"Pods":[' + POD
        + b'],"NumPDBViolations":1}},"NodeNameToMetaVictims":null}'
    )  # fmt: skip


def test_a_preemption_request_with_uids() -> None:
    victims = {"foo": MetaVictims(pods=(MetaPod(uid="myuid"),), num_pdb_violations=1)}
    assert encode(ExtenderPreemptionArgs(pod=Raw(POD), node_name_to_meta_victims=victims)) == (
        b'{"Pod":' + POD + b',"NodeNameToVictims":null,"NodeNameToMetaVictims":'
        b'{"foo":{"Pods":[{"UID":"myuid"}],"NumPDBViolations":1}}}'
    )


# --- answers ----------------------------------------------------------------------------------

FILTER_ANSWER = {
    "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "nodename"}, "spec": {}}]},
    "NodeNames": ["node1"],
    "FailedNodes": {"foo": "bar"},
    "FailedAndUnresolvableNodes": {"baz": "qux"},
    "Error": "myerror",
}


@pytest.mark.parametrize("spell", [str, str.lower, str.upper, str.swapcase])
def test_keys_are_read_whatever_their_case(spell: type[str]) -> None:
    def spelled(value: object) -> object:
        if isinstance(value, dict):
            return {spell(key): spelled(each) for key, each in value.items()}
        return [spelled(each) for each in value] if isinstance(value, list) else value

    # The keys of these two are node names, whose case matters.
    maps = {"FailedNodes", "FailedAndUnresolvableNodes"}
    answer = {
        spell(key): value if key in maps else spelled(value) for key, value in FILTER_ANSWER.items()
    }
    assert read_filter_answer(msgspec.json.encode(answer)) == FilterAnswer(
        nodes=["nodename"],
        node_names=["node1"],
        failed={"foo": "bar"},
        unresolvable={"baz": "qux"},
        error="myerror",
    )
    hosts = msgspec.json.encode([{spell("Host"): "myhost", spell("Score"): 1}])
    assert read_priorities(hosts) == [("myhost", 1)]
    assert read_binding_answer(msgspec.json.encode({spell("Error"): "no"})) == "no"
    victims = {spell("Pods"): [{spell("UID"): "myuid"}], spell("NumPDBViolations"): 2}
    result = msgspec.json.encode({spell("NodeNameToMetaVictims"): {"Foo": victims}})
    assert read_preemption_answer(result) == {
        "Foo": MetaVictims(pods=(MetaPod(uid="myuid"),), num_pdb_violations=2)
    }


@pytest.mark.parametrize("body", [b"{}", b"null", b'{"Nodes":null,"NodeNames":null,"Error":null}'])
def test_nothing_is_not_an_empty_list(body: bytes) -> None:
    assert read_filter_answer(body) == FilterAnswer()
    assert read_filter_answer(b'{"NodeNames":[],"Nodes":{}}') == FilterAnswer(
        node_names=[], nodes=[]
    )


def test_nulls_inside_are_empty_values() -> None:
    assert read_filter_answer(b'{"NodeNames":[null],"FailedNodes":{"a":null}}') == FilterAnswer(
        node_names=[""], failed={"a": ""}
    )
    assert read_priorities(b'[null,{"Host":null,"Score":null},{}]') == [("", 0)] * 3
    assert read_priorities(b"null") == []
    assert read_preemption_answer(b'{"NodeNameToMetaVictims":{"a":null}}') == {"a": MetaVictims()}
    assert read_preemption_answer(b"{}") == {}


def test_unknown_keys_and_what_follows_the_answer_are_ignored() -> None:
    assert read_binding_answer(b'{"more":{"Error":"x"},"Error":"no"}\n') == "no"
    assert read_binding_answer(b' {"Error":"no"} {"Error":"yes"}') == "no"
    assert read_priorities(b"[]garbage") == []


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (b"", "truncated"),
        (b"<html>", "malformed"),
        (b"[]", "Expected `object | null`, got `array`"),
        (b'"text"', "got `str`"),
        (b'{"NodeNames":5}', "Expected `array | null`, got `int` in NodeNames"),
        (b'{"NodeNames":["a",5]}', "got `int` - at `$[1]` in NodeNames"),
        (b'{"NodeNames":"a"}', "in NodeNames"),
        (b'{"Nodes":[]}', "got `array` in Nodes"),
        (b'{"Nodes":{"items":{}}}', "in Nodes.Items"),
        (b'{"Nodes":{"items":[{"metadata":5}]}}', "in Nodes.Items[0].Metadata"),
        (b'{"Nodes":{"items":[{"metadata":{"name":5}}]}}', "in Nodes.Items[0].Metadata.Name"),
        (b'{"FailedNodes":{"a":5}}', "in FailedNodes"),
        (b'{"FailedNodes":["a"]}', "in FailedNodes"),
        (b'{"Error":false}', "in Error"),
        (b'{"Error":"\xff"}', "utf-8"),
        (b'{"Error":' + b"[" * 100_000, "nested too deeply"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
)
def test_an_answer_of_the_wrong_form_is_refused_in_one_line(body: bytes, want: str) -> None:
    with pytest.raises(ExtenderError, match=r"^the answer cannot be read: ") as refused:
        read_filter_answer(body)
    assert want in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'[{"Host":5}]',
        b'[{"Host":"a","Score":1.5}]',
        b'[{"Host":"a","Score":1.0}]',
        b'[{"Host":"a","Score":"1"}]',
        b'[{"Host":"a","Score":true}]',
        b'[{"Host":"a","Score":9223372036854775808}]',
        b'[{"Host":"a","Score":-9223372036854775809}]',
        b'["a"]',
    ],
)
def test_scores_are_whole_numbers_of_64_bits(body: bytes) -> None:
    with pytest.raises(ExtenderError, match="cannot be read"):
        read_priorities(body)
    assert read_priorities(b'[{"Host":"a","Score":9223372036854775807}]') == [("a", 2**63 - 1)]


def test_what_an_extender_says_becomes_one_line_of_bearable_length() -> None:
    assert read_binding_answer(b'{"Error":"a\\nb\\r\\nc"}') == "a b c"
    long = read_filter_answer(b'{"FailedNodes":{"n":"' + b"x" * 100_000 + b'"}}').failed["n"]
    assert len(long) == 4097
    assert long.endswith("x…")


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,nulNodeames0.1- ').map(str.encode))
def test_no_answer_does_anything_but_be_read_or_refused(body: bytes) -> None:
    for read in (read_filter_answer, read_priorities, read_binding_answer, read_preemption_answer):
        with contextlib.suppress(ExtenderError):
            read(body)
