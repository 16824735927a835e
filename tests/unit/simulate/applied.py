"""Manifests as texts, applied to a few objects."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from kubesched.cluster.object_store import HasMeta
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.simulate.applying import apply
from kubesched.simulate.playing import Conditions
from kubesched.simulate.report import Applied
from kubesched.simulate.wanted_pods import Replicas, WantedPods, wanted_pods
from kubesched.snapshot.contents import Snapshot
from tests.support.worlds import GATES, snapshot_of


def objects_of(text: str) -> list[tuple[str, dict[str, object]]]:
    """Return the documents of a text."""
    return [("file", tree) for tree in yaml.safe_load_all(text)]


def wanted_of(
    text: str, objects: Iterable[HasMeta] | Snapshot = (), *, replicas: Replicas | None = None
) -> list[WantedPods]:
    """Return the pods that manifests ask for."""
    snapshot = objects if isinstance(objects, Snapshot) else snapshot_of(objects)
    return wanted_pods(snapshot, objects_of(text), namespace="default", replicas=replicas)


def applied(
    text: str,
    objects: Iterable[HasMeta],
    *,
    replicas: Replicas | None = None,
    gates: FeatureGates = GATES,
) -> Applied:
    """Apply manifests to a cluster of objects."""
    snapshot = snapshot_of(objects)
    wanted = wanted_of(text, snapshot, replicas=replicas)
    config = SchedulerConfiguration.default(gates)
    return apply(Conditions(snapshot=snapshot, config=config, gates=gates), wanted)


def workload(
    kind: str = "Deployment", name: str = "web", *, cpu: str = "1", spec: str = "", pod: str = ""
) -> str:
    """Return a workload's manifest; `spec` and `pod` are lines of flow style for its specs."""
    return f"""\
apiVersion: {"batch/v1" if kind in ("Job", "CronJob") else "apps/v1"}
kind: {kind}
metadata: {{name: {name}}}
spec: {{{spec} selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{
  app: {name}}}}}, spec: {{{pod} containers: [{{
  name: c, image: i, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}}}
"""
