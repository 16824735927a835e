"""Files that say what is to happen: all forms say the same, and mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ObjectError
from kubesched.simulate.casting import Casting
from kubesched.simulate.timed_events import Arrival, NodeAdded, NodeDrained, NodeLost, TimedEvent
from kubesched.simulate.trace import Script, read_script
from tests.support.objects import node
from tests.support.worlds import snapshot_of

TEMPLATE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
"""
NODES = [node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b")]


def _read(folder: Path, name: str, text: str) -> Script:
    (folder / "web.yaml").write_text(TEMPLATE)
    (folder / name).write_text(text)
    casting = Casting(snapshot_of(NODES))
    casting.read_template(folder / "web.yaml")
    return read_script(folder / name, casting)


SAME = {
    "a.jsonl": '{"time": 0, "template": "web", "duration": "10m"}\n'
    '{"time": "1m", "template": "web", "count": 2}\n',
    "b.yaml": "{time: 0, template: web, duration: 600}\n{time: 60s, template: web, count: 2}\n",
    "c.yaml": "time: 0\ntemplate: web\nduration: 600.0\n---\ntime: 60\ntemplate: web\ncount: 2\n",
    "d.yml": "- {time: 0, template: web, duration: 10m}\n- {time: 1m, template: web, count: 2}\n",
    "e.csv": "time,template,duration,count\n0,web,10m,\n60, web,,2\n",
    "f.jsonl": '{"time": "2026-01-01T00:01:00Z", "template": "web", "count": 2}\n'
    '{"time": "2026-01-01T00:00:00Z", "template": "web", "duration": "10m"}\n',
}


@pytest.mark.parametrize("name", SAME)
def test_all_forms_of_a_trace_say_the_same(tmp_path: Path, name: str) -> None:
    found = _read(tmp_path, name, SAME[name]).happenings(seed=0)

    assert all(isinstance(each, Arrival) for each in found)
    arrivals = [each for each in found if isinstance(each, Arrival)]
    assert [(each.at_s, each.lifetime_s) for each in arrivals] == [
        (0.0, 600.0),
        (60.0, None),
        (60.0, None),
    ]
    assert {each.pod.metadata.namespace for each in arrivals} == {"shop"}
    assert len({each.pod.metadata.name for each in arrivals}) == 3
    assert len({each.pod.metadata.uid for each in arrivals}) == 3
    assert arrivals[0].pod.spec.containers[0].resources is not None


def test_a_pod_is_given_by_its_manifest_or_by_its_file(tmp_path: Path) -> None:
    text = (
        '{"time": 0, "pod": {"metadata": {"name": "own"}, "spec": {"priority": 7, '
        '"containers": [{"name": "c"}]}}, "name": "this"}\n'
        '{"time": 1, "pod": "web.yaml"}\n'
    )

    first, second = _read(tmp_path, "t.jsonl", text).happenings(seed=0)

    assert isinstance(first, Arrival)
    assert (first.pod.metadata.name, first.pod.spec.priority) == ("this", 7)
    assert isinstance(second, Arrival)
    assert second.pod.metadata.name == "web-2"


def test_nodes_come_and_go(tmp_path: Path) -> None:
    text = """\
{"time": 1, "add": 2, "like": "n1"}
{"time": 2, "add": 1, "node": {"metadata": {"name": "big"}, "status": {"capacity": {"cpu": "64"}}}}
{"time": 3, "lose": "n1", "for": "30m"}
{"time": 4, "loseZone": "a"}
{"time": 5, "drain": "n3"}
"""

    found = _read(tmp_path, "t.jsonl", text).happenings(seed=0)

    added = [each for each in found if isinstance(each, NodeAdded)]
    assert [(each.at_s, each.like) for each in added] == [(1.0, "n1"), (1.0, "n1"), (2.0, "")]
    assert len({each.node.metadata.name for each in added}) == 3
    assert added[2].node.status.allocatable == {"cpu": "64"}
    gone: list[TimedEvent] = [
        NodeLost(3.0, "n1", 1800.0),
        NodeLost(4.0, "n1"),
        NodeLost(4.0, "n2"),
        NodeDrained(5.0, "n3"),
    ]
    assert found[3:] == gone


WRONG = {
    "nothing": ("", "there is nothing in it"),
    "no time": ('{"template": "web"}', "t.jsonl, line 1: Object missing required field time"),
    "unknown field": ('{"time": 0, "tmplate": "web"}', "unknown field tmplate"),
    "unknown template": (
        '{"time": 0, "template": "wed"}',
        "there is no template wed; known are web",
    ),
    "bad time": ('{"time": "soon", "template": "web"}', "time: 'soon' is no length of time"),
    "negative": ('{"time": -1, "template": "web"}', "it must be 0 or more seconds"),
    "nothing happens": ('{"time": 0}', "say what happens"),
    "both": ('{"time": 0, "template": "web", "pod": {}, "lose": "n1", "name": 3}', "Expected str"),
    "no such node": ('{"time": 0, "add": 1, "like": "n9"}', "node n9 not found"),
    "no such zone": ('{"time": 0, "loseZone": "z"}', "there is no node in zone z"),
    "bad line": ('{"time": 0, "template": "web"}\n{"time": [}', "line 2: neither JSON nor YAML"),
    "dates mixed": (
        '{"time": "2026-01-01T00:00:00Z", "template": "web"}\n{"time": 5, "template": "web"}',
        "line 2: time: other records have a date",
    ),
    "an object": ("apiVersion: v1\nkind: Pod\n", "an API object"),
    "bad manifest": ('{"time": 0, "pod": {"spec": {"containers": 5}}}', "line 1: pod"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_named_in_one_line(tmp_path: Path, case: str) -> None:
    text, message = WRONG[case]

    with pytest.raises(ObjectError) as refused:
        _read(tmp_path, "t.jsonl", text)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ObjectError, match=r"cannot read .*none\.yaml: No such file"):
        read_script(tmp_path / "none.yaml", Casting(snapshot_of(NODES)))


def test_csv_with_more_fields_than_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ObjectError, match="line 2: more fields than the first line names"):
        _read(tmp_path, "t.csv", "time,template\n0,web,10m\n")
