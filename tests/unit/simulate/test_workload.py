"""Generated workloads: rates, durations, and the same every time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from kubesched.errors import ObjectError
from kubesched.simulate.casting import Casting
from kubesched.simulate.timed_events import Arrival, NodeLost, TimedEvent
from kubesched.simulate.trace import Script, read_script
from tests.support.objects import node
from tests.support.worlds import snapshot_of

POD = "{spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}}"
DAY = 86_400.0


def _workload(folder: Path, templates: str, nodes: str = "[]", duration: str = "24h") -> Script:
    text = f"kind: Workload\nduration: {duration}\ntemplates: {templates}\nnodes: {nodes}\n"
    path = folder / "workload.yaml"
    path.write_text(text)
    return read_script(path, Casting(snapshot_of([node("n1"), node("n2")])))


def _arrivals(found: list[TimedEvent], name: str) -> list[Arrival]:
    return [
        each
        for each in found
        if isinstance(each, Arrival) and each.pod.metadata.name.startswith(f"{name}-")
    ]


def test_poisson_arrivals_come_at_their_rate_and_by_chance(tmp_path: Path) -> None:
    script = _workload(tmp_path, f"[{{name: web, arrivals: {{perHour: 100}}, pod: {POD}}}]")

    found = _arrivals(script.happenings(seed=1), "web")

    assert len(found) == pytest.approx(2400, rel=0.1)
    gaps = [after.at_s - before.at_s for before, after in pairwise(found)]
    # Of exponential gaps the mean is the deviation.
    assert statistics.stdev(gaps) == pytest.approx(statistics.fmean(gaps), rel=0.15)
    assert script.until_s == DAY


def test_even_arrivals_are_even_and_come_together(tmp_path: Path) -> None:
    arrivals = "{perHour: 2, pattern: even, count: 3}"
    script = _workload(
        tmp_path,
        f"[{{name: web, arrivals: {arrivals}, lifetime: {{fixed: 10m}}, pod: {POD}}}]",
        duration="2h",
    )

    found = _arrivals(script.happenings(seed=1), "web")

    assert [each.at_s for each in found] == [0.0] * 3 + [1800.0] * 3 + [3600.0] * 3 + [5400.0] * 3
    assert {each.lifetime_s for each in found} == {600.0}


def test_diurnal_arrivals_have_their_peak_and_the_same_mean(tmp_path: Path) -> None:
    arrivals = "{perHour: 200, pattern: diurnal, peakAt: 14h, swing: 0.9}"
    script = _workload(tmp_path, f"[{{name: web, arrivals: {arrivals}, pod: {POD}}}]")

    found = _arrivals(script.happenings(seed=1), "web")

    assert len(found) == pytest.approx(4800, rel=0.1)
    peak = [each for each in found if 12 * 3600 <= each.at_s < 16 * 3600]
    night = [each for each in found if each.at_s < 4 * 3600]
    assert len(peak) > 5 * len(night)


@pytest.mark.parametrize(
    ("lifetime", "median"),
    [
        ("{exponential: 1h}", 3600 * 0.693),
        ("{lognormal: {median: 30m, sigma: 0.5}}", 1800),
        ("{fixed: 90}", 90),
    ],
)
def test_lifetimes_are_distributed_as_asked(tmp_path: Path, lifetime: str, median: float) -> None:
    script = _workload(
        tmp_path, f"[{{name: web, arrivals: {{perHour: 100}}, lifetime: {lifetime}, pod: {POD}}}]"
    )

    found = [each.lifetime_s or 0.0 for each in _arrivals(script.happenings(seed=1), "web")]

    assert statistics.median(found) == pytest.approx(median, rel=0.1)


def test_another_template_does_not_change_the_first(tmp_path: Path) -> None:
    web = f"{{name: web, arrivals: {{perHour: 10}}, lifetime: {{exponential: 1h}}, pod: {POD}}}"
    other = f"{{name: other, arrivals: {{perHour: 5}}, pod: {POD}}}"

    alone = _workload(tmp_path, f"[{web}]").happenings(seed=3)
    both = _workload(tmp_path, f"[{other}, {web}]").happenings(seed=3)

    assert _arrivals(alone, "web") == _arrivals(both, "web")
    assert _arrivals(both, "other")
    assert _arrivals(_workload(tmp_path, f"[{web}]").happenings(seed=4), "web") != alone


def test_nodes_fail_by_chance_as_often_as_asked(tmp_path: Path) -> None:
    script = _workload(tmp_path, "[]", nodes="[{every: 15m, lose: any, for: 5m}]")

    found = script.happenings(seed=1)

    assert len(found) == pytest.approx(96, rel=0.4)
    assert all(isinstance(each, NodeLost) and each.for_s == 300.0 for each in found)
    assert {each.node_name for each in found if isinstance(each, NodeLost)} == {"n1", "n2"}


WRONG = {
    "[{name: web, arrivals: {perHour: 0}, pod: {}}]": "perHour must be more than 0",
    "[{name: web, arrivals: {perHour: 1, pattern: weekly}, pod: {}}]": "weekly is none of poisson",
    "[{name: web, arrivals: {perHour: 1, swing: 2}, pod: {}}]": "must be between 0 and 1",
    "[{name: web, pod: {}}]": "templates[0]: Object missing required field arrivals",
    f"[{{name: web, arrivals: {{perHour: 1}}, lifetime: {{}}, pod: {POD}}}]": "say one of fixed",
    "[{name: web, arrivals: {perHour: 1}}]": "there is no template web",
    "[{name: web, arrivals: {perHour: 1}, file: none.yaml}]": "cannot read",
    "[{name: web, arrivals: {perhour: 1}, pod: {}}]": "unknown field perhour",
}


@pytest.mark.parametrize("templates", WRONG)
def test_mistakes_in_workloads_are_named(tmp_path: Path, templates: str) -> None:
    with pytest.raises(ObjectError) as refused:
        _workload(tmp_path, templates)

    assert WRONG[templates] in str(refused.value)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("[{lose: n1}]", "say when: at or every"),
        ("[{at: 1h, lose: n1, drain: n2}]", "say one of add, lose, loseZone, drain"),
        ("[{at: 1h, add: 3}]", "like one, or have a node's manifest"),
        ("[{every: 0, lose: any}]", "must be more than 0"),
    ],
)
def test_mistakes_about_nodes_are_named(tmp_path: Path, nodes: str, message: str) -> None:
    with pytest.raises(ObjectError, match=message):
        _workload(tmp_path, "[]", nodes=nodes)


RUN = """
import sys
from pathlib import Path
import msgspec
from kubesched.simulate.casting import Casting
from kubesched.simulate.running import run
from kubesched.simulate.trace import read_script
from tests.support.objects import node
from tests.unit.simulate.plays import conditions_of

nodes = [node(f"n{n}", zone="ab"[n % 2]) for n in range(4)]
conditions = conditions_of(nodes, seed=int(sys.argv[2]))
script = read_script(Path(sys.argv[1]), Casting(conditions.snapshot))
print(msgspec.json.encode(run(conditions, script)).decode())
"""


def test_the_same_seed_gives_the_same_run_in_every_process(tmp_path: Path) -> None:
    """Whatever order sets of strings have: a crowded cluster, preemption, nodes that fail."""
    web = "{spec: {priority: 5, containers: [{name: c, resources: {requests: {cpu: 1500m}}}]}}"
    _workload(
        tmp_path,
        f"[{{name: web, arrivals: {{perHour: 12}}, lifetime: {{exponential: 40m}}, pod: {web}}}, "
        f"{{name: low, arrivals: {{perHour: 90}}, lifetime: {{exponential: 1h}}, pod: {POD}}}, "
        "{name: big, arrivals: {perHour: 4}, lifetime: {fixed: 20m}, "
        "pod: {spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}}]",
        nodes="[{every: 2h, lose: any, for: 10m}]",
        duration="2h",
    )

    def run(seed: int, hash_seed: str) -> str:
        command = [sys.executable, "-c", RUN, str(tmp_path / "workload.yaml"), str(seed)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        ended = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, timeout=60
        )
        return ended.stdout

    first = run(1, "1")

    assert '"preemptions":[{' in first
    assert run(1, "2") == first
    assert run(2, "1") != first
