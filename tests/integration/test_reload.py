"""Another configuration while the scheduler runs: read on SIGHUP or when its file changes.

What it says counts from the next cycle on. What cannot be used is refused with one line in the log,
and everything goes on as before.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.waiting import stays, until

from .control_plane import ControlPlane, JsonObject
from .replicas import free_port, page, serving
from .scheduler_process import (
    SchedulerProcess,
    condition_of,
    configuration,
    node,
    node_of,
    pod,
    pods_path,
    profile,
    run_command,
    wait_until_bound,
    wait_until_refused,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

#: How often a scheduler looks at its file.
PERIOD_S = 2.0


class Reloading:
    """A scheduler whose configuration file a test changes."""

    def __init__(self, plane: ControlPlane, file: Path) -> None:
        self._plane = plane
        self.file = file
        self.port = free_port()
        self.scheduler: SchedulerProcess

    @contextlib.contextmanager
    def run(self, log: Path, *more: str) -> Iterator[None]:
        flags = (f"--config={self.file}", *serving(self._plane, self.port), *more)
        with run_command(log, *flags) as self.scheduler:
            self.scheduler.wait_until_scheduling()
            yield

    def say(self, *profiles: JsonObject, **settings: object) -> None:
        """Write another configuration, all at once."""
        config = configuration(self._plane.scheduler_kubeconfig, *profiles, **settings)
        self.write(json.dumps(config))

    def write(self, text: str) -> None:
        beside = self.file.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self.file)

    def signal(self) -> None:
        """Ask for the file to be read."""
        self.scheduler.send(signal.SIGHUP)

    def wait_for(self, text: str, *, times: int = 1) -> None:
        """Wait until something was logged so many times."""
        until(lambda: self.scheduler.log().count(text) >= times, seconds=10)

    def in_use(self) -> JsonObject:
        """The configuration as the scheduler shows it."""
        shown: JsonObject = json.loads(page(self._plane, self.port, "/configz").body)
        config: JsonObject = shown["componentconfig"]
        return config

    def profiles_in_use(self) -> list[str]:
        return [each["schedulerName"] for each in self.in_use()["profiles"]]

    def strategy_in_use(self) -> str:
        """By what the first profile chooses among nodes that have room."""
        plugins = self.in_use()["profiles"][0]["pluginConfig"]
        (fit,) = (each["args"] for each in plugins if each["name"] == "NodeResourcesFit")
        return str(fit["scoringStrategy"]["type"])


@pytest.fixture
def reloading(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Reloading]:
    """A scheduler of pods that name the scheduler `a`."""
    subject = Reloading(control_plane, tmp_path / "config.json")
    subject.say(profile("a"))
    with subject.run(tmp_path / "scheduler.log"):
        yield subject


IN_USE = '"Configuration in use"'
REFUSED = '"Configuration rejected, the previous one stays in use"'


def create(plane: ControlPlane, namespace: str, name: str, scheduler: str, **more: object) -> None:
    body = pod(name, schedulerName=scheduler, **more)  # type: ignore[arg-type]
    plane.request("POST", pods_path(namespace), body)


def test_profiles_come_and_go(
    control_plane: ControlPlane, namespace: str, reloading: Reloading
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node("n1")])
    for name in ("a", "b"):
        create(plane, namespace, f"of-{name}", name)
        create(plane, namespace, f"stuck-{name}", name, nodeSelector={"no": "where"})
    wait_until_bound(plane, namespace, "of-a")
    wait_until_refused(plane, namespace, "stuck-a")
    assert node_of(plane, namespace, "of-b") == ""
    assert reloading.profiles_in_use() == ["a"]

    reloading.say(profile("b"))
    reloading.signal()
    wait_until_bound(plane, namespace, "of-b")
    wait_until_refused(plane, namespace, "stuck-b")
    assert reloading.profiles_in_use() == ["b"]

    # What pods of the other profile waited for is not waited for any more.
    create(plane, namespace, "late-a", "a")
    plane.create_many("/api/v1/nodes", [node("n2", labels={"no": "where"})])
    wait_until_bound(plane, namespace, "stuck-b")
    stays(lambda: not node_of(plane, namespace, "stuck-a"), seconds=1.5)
    assert node_of(plane, namespace, "late-a") == ""

    reloading.say(profile("b"), profile("a"))
    reloading.signal()
    wait_until_bound(plane, namespace, "late-a", "stuck-a")
    assert reloading.profiles_in_use() == ["b", "a"]


def _fit(strategy: str) -> JsonObject:
    resources = [{"name": "cpu", "weight": 1}]
    return {"NodeResourcesFit": {"scoringStrategy": {"type": strategy, "resources": resources}}}


def test_arguments_of_plugins_change_where_the_next_pod_goes(
    control_plane: ControlPlane, namespace: str, reloading: Reloading
) -> None:
    plane = control_plane
    only_fit = {
        "preScore": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]},
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]},
    }
    plane.create_many("/api/v1/nodes", [node("full"), node("empty")])
    plane.request("POST", pods_path(namespace), pod("x", requests={"cpu": "2"}, nodeName="full"))

    def placed(name: str) -> str:
        create(plane, namespace, name, "a", requests={"cpu": "100m"})
        return wait_until_bound(plane, namespace, name)[name]

    for number, (strategy, wanted) in enumerate(
        [("LeastAllocated", "empty"), ("MostAllocated", "full"), ("LeastAllocated", "empty")]
    ):
        reloading.say(profile("a", plugins=only_fit, args=_fit(strategy)))
        reloading.signal()
        # Not counted in the log: the scheduler may have looked at its file just before the signal.
        until(lambda: reloading.strategy_in_use() == strategy, seconds=10)  # noqa: B023 (now)
        assert placed(f"p{number}") == wanted, strategy


def _document(**fields: object) -> str:
    kind = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
    }
    return json.dumps({**kind, **fields})


_UNKNOWN_PLUGIN = profile("a", plugins={"filter": {"enabled": [{"name": "NoSuchPlugin"}]}})


_UNUSABLE = {
    "profiles: [": "line 1",
    "[" * 100_000: "line 1: nested more than 100 levels deep",
    _document(kind="Kube"): 'no kind "Kube"',
    _document(parallelism=-1): "parallelism: Invalid value: -1",
    _document(profiles=[_UNKNOWN_PLUGIN]): "NoSuchPlugin",
}


def _said_since(scheduler: SchedulerProcess, lines: int, problem: str) -> list[str] | None:
    """What was logged after so many lines, once a problem is among it."""
    said = scheduler.log().splitlines()[lines:]
    return said if any(problem in line.replace('\\"', '"') for line in said) else None


def test_what_cannot_be_used_is_refused_in_one_line(
    control_plane: ControlPlane, namespace: str, reloading: Reloading
) -> None:
    before = reloading.in_use()
    for text, problem in _UNUSABLE.items():
        lines = len(reloading.scheduler.log().splitlines())
        reloading.write(text)
        reloading.signal()
        # The scheduler may have looked at its file just before the signal, and then says it twice.
        said = until(partial(_said_since, reloading.scheduler, lines, problem), seconds=10)
        for line in said:
            assert line.startswith("E"), said
            assert REFUSED in line
            assert str(reloading.file) in line
    # Once is enough: the file has not changed since.
    time.sleep(0.3)  # the second of the two, if there is one
    times = reloading.scheduler.log().count(REFUSED)
    assert len(_UNUSABLE) <= times <= 2 * len(_UNUSABLE)
    time.sleep(PERIOD_S + 0.5)  # it is looked at once more
    assert reloading.scheduler.log().count(REFUSED) == times

    assert reloading.in_use() == before
    control_plane.create_many("/api/v1/nodes", [node("n1")])
    create(control_plane, namespace, "p", "a")
    wait_until_bound(control_plane, namespace, "p")


def test_a_file_is_read_again_when_it_changes(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """As the kubelet changes a ConfigMap's volume: links to a folder that is swapped as a whole."""
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node("n1")])
    create(plane, namespace, "p", "b")
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "config.json").symlink_to(Path("..data") / "config.json")

    def swap(version: str, name: str) -> None:
        folder = volume / version
        folder.mkdir()
        config = configuration(plane.scheduler_kubeconfig, profile(name))
        (folder / "config.json").write_text(json.dumps(config))
        (volume / "..data_tmp").symlink_to(version)
        (volume / "..data_tmp").replace(volume / "..data")

    swap("..v1", "a")
    subject = Reloading(plane, volume / "config.json")
    with subject.run(tmp_path / "scheduler.log"):
        assert subject.profiles_in_use() == ["a"]
        assert condition_of(plane, namespace, "p") is None

        swap("..v2", "b")
        wait_until_bound(plane, namespace, "p", seconds=PERIOD_S + 5)
        assert subject.profiles_in_use() == ["b"]

        # A file that is away for a while is no configuration, and no reason to stop.
        (volume / "..data").unlink()
        time.sleep(PERIOD_S + 0.5)  # it is looked for at least once
        assert subject.profiles_in_use() == ["b"]
        assert subject.scheduler.log_lines() == []
        swap("..v3", "c")
        until(lambda: subject.profiles_in_use() == ["c"], seconds=PERIOD_S + 5)


def test_what_only_a_start_can_change_is_named_and_left_as_it_is(reloading: Reloading) -> None:
    before = reloading.in_use()
    reloading.say(
        profile("a"),
        leaderElection={"leaderElect": True},
        podInitialBackoffSeconds=3,
    )
    reloading.signal()
    reloading.wait_for('"Changes that need a restart were ignored"')
    assert "leaderElection" in reloading.scheduler.log_lines("W")[-1]
    assert reloading.in_use() == {**before, "podInitialBackoffSeconds": 3}


_TASTE = """\
from kubesched.framework.node_by_node import NodeFilter

class Taste(NodeFilter):
    def filter_node(self, pod, node):
        return None if node.name == {wanted!r} else "node(s) were not to my taste"
"""


def test_a_changed_plugin_file_takes_effect_and_a_broken_one_does_not(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    plane, plugin = control_plane, tmp_path / "taste.py"
    plugin.write_text(_TASTE.format(wanted="n1"))
    subject = Reloading(plane, tmp_path / "config.json")
    subject.say(profile("a", plugins={"multiPoint": {"enabled": [{"name": "Taste"}]}}))
    plane.create_many("/api/v1/nodes", [node("n1"), node("n2")])

    def placed(name: str) -> str:
        create(plane, namespace, name, "a")
        return wait_until_bound(plane, namespace, name)[name]

    with subject.run(tmp_path / "scheduler.log", f"--plugin={plugin}"):
        assert placed("first") == "n1"

        plugin.write_text(_TASTE.format(wanted="n2"))
        subject.signal()
        subject.wait_for(IN_USE)
        assert placed("second") == "n2"

        lines = len(subject.scheduler.log().splitlines())
        plugin.write_text("def (")
        subject.signal()
        subject.wait_for(REFUSED)
        said = subject.scheduler.log().splitlines()[lines:]
        assert len(said) == 1, said
        assert f"{plugin}:1" in said[0]
        assert placed("third") == "n2"
