"""Many pods whose claims are not bound, and volumes and claims that change all the time.

kube-scheduler tries them on the same work, and says the same; how often either tries is counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject
from .scheduler_process import (
    all_pods,
    configuration,
    events_of,
    node,
    pod,
    pods_path,
    profile,
    run_scheduler,
)

PODS = 40
CHANGES = 120
WINDOW_S = 2.5
#: Five tries while the backoff doubles, then one a second.
MOST_IN_WINDOW = 8

CLAIMS = "/api/v1/namespaces/{}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
MERGE = "application/merge-patch+json"

_ATTEMPT = re.compile(
    r'^I\d{4} (\d\d):(\d\d):(\d\d\.\d+).*"Attempting to schedule pod" pod="[^/]+/([^"]+)"',
    re.MULTILINE,
)

#: Does one of the changes, which come in numbers.
Change = Callable[[ControlPlane, str, int], None]
#: Runs a scheduler, and says where it logs.
Running = Callable[[ControlPlane], AbstractContextManager[Callable[[], Path]]]


def claim(number: int) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"claim-{number}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "at-once",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def new_volume(plane: ControlPlane, namespace: str, number: int) -> None:
    """A volume comes that no claim wants."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{namespace}-{number}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "other",
            "csi": {"driver": "disk.example.com", "volumeHandle": str(number)},
        },
    }
    plane.request("POST", VOLUMES, volume)


def touched_claim(plane: ControlPlane, namespace: str, number: int) -> None:
    """The claim of one of the pods changes, and is not bound."""
    path = f"{CLAIMS.format(namespace)}/claim-{number % 3}"
    touched = {"metadata": {"annotations": {"touched": str(number)}}}
    plane.request("PATCH", path, touched, content_type=MERGE)


class Tries:
    """When each pod was tried, by a log of verbosity 3."""

    def __init__(self, log: Path) -> None:
        self.by_pod: dict[str, list[float]] = defaultdict(list)
        for hours, minutes, seconds, name in _ATTEMPT.findall(log.read_text(errors="replace")):
            moment = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
            self.by_pod[name].append(moment)

    def total(self) -> int:
        return sum(map(len, self.by_pod.values()))

    def most_in_window(self) -> int:
        """The most tries of one pod within some seconds."""
        most = 0
        for moments in self.by_pod.values():
            first = 0
            for last, moment in enumerate(moments):
                while moment - moments[first] > WINDOW_S:
                    first += 1
                most = max(most, last - first + 1)
        return most


@contextmanager
def ours(plane: ControlPlane) -> Iterator[Callable[[], Path]]:
    config = configuration(plane.scheduler_kubeconfig, profile("storm"))
    with run_scheduler(plane, config, "--v=3") as scheduler:
        scheduler.wait_until_scheduling()
        yield lambda: scheduler.log_file


@contextmanager
def theirs(plane: ControlPlane) -> Iterator[Callable[[], Path]]:
    config = configuration(plane.scheduler_kubeconfig, profile("storm"))
    with plane.run_kube_scheduler(config, "--v=3") as process:
        yield lambda: process.log


class Outcome:
    """How often pods were tried, and what was said of them."""

    def __init__(self, plane: ControlPlane, namespace: str, log: Path) -> None:
        self.tries = Tries(log)
        self.conditions = {
            condition["message"]
            for each in all_pods(plane, namespace)
            for condition in each["status"].get("conditions", [])
            if condition["type"] == "PodScheduled"
        }
        self.notes = {each["note"] for each in events_of(plane, namespace)}


def storm(
    plane: ControlPlane,
    namespace: str,
    change: Change,
    running: Running,
) -> Outcome:
    plane.create_many(CLAIMS.format(namespace), [claim(number) for number in range(PODS)])
    with running(plane) as log:
        volumes = (
            {"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{number}"}}
            for number in range(PODS)
        )
        plane.create_many(
            pods_path(namespace),
            [
                pod(f"p-{number}", schedulerName="storm", volumes=[volume])
                for number, volume in enumerate(volumes)
            ],
        )
        until(lambda: all(map(_is_told, all_pods(plane, namespace))), every=0.2)
        for number in range(CHANGES):
            change(plane, namespace, number)
        return Outcome(plane, namespace, log())


def _is_told(each: JsonObject) -> bool:
    conditions = each["status"].get("conditions", [])
    return any(condition["type"] == "PodScheduled" for condition in conditions)


@pytest.fixture
def cluster(control_plane: ControlPlane, clean_cluster: None) -> ControlPlane:
    control_plane.create_many("/api/v1/nodes", [node(f"n-{number}") for number in range(5)])
    at_once = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "at-once"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "Immediate",
    }
    control_plane.request("POST", CLASSES, at_once)
    return control_plane


@pytest.mark.slow
@pytest.mark.parametrize("change", [new_volume, touched_claim])
def test_a_storm_of_changes_has_pods_tried_no_more_often_than_by_kube_scheduler(
    cluster: ControlPlane, change: Change
) -> None:
    outcomes = {}
    for name, running in (("ours", ours), ("theirs", theirs)):
        namespace = f"storm-{name}"
        cluster.create_namespace(namespace)
        try:
            outcomes[name] = storm(cluster, namespace, change, running)
        finally:
            cluster.delete_namespace(namespace)
    own, other = outcomes["ours"], outcomes["theirs"]
    assert own.conditions == other.conditions
    assert own.notes == other.notes
    assert own.tries.most_in_window() <= MOST_IN_WINDOW
    if change is new_volume:
        # A volume that no claim of theirs can choose is nothing to them.
        assert own.tries.total() <= 2 * PODS
