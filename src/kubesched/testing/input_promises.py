"""Unusual nodes and pods that an API server accepts, or once accepted: no plugin fails on them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import Filter, RowFilter
from kubesched.testing.trial import DECIDING, PluginTrial, Promises

PROMISES: Final = Promises()

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_BAD_EXPRESSION: Final = {"key": "", "operator": "Resembles", "values": ["x"]}
_BAD_TERM: Final = {"topologyKey": "", "labelSelector": {"matchExpressions": [_BAD_EXPRESSION]}}

#: What is odd → spec of a pod.
ODD_PODS: Final[dict[str, dict[str, Any]]] = {
    "no-containers": {},
    "only-init": {"initContainers": [{"name": "a"}]},
    "no-image": {"containers": [{"name": "", "image": ""}]},
    "huge": {"containers": [{"resources": {"requests": {"cpu": "9000T", "memory": "7Ei"}}}]},
    "zero": {"containers": [{"resources": {"requests": {"cpu": "0", "nvidia.com/gpu": "0"}}}]},
    "ports": {"containers": [{"ports": [{"hostPort": 70000, "hostIP": "?", "protocol": "X"}]}]},
    "tolerations": {
        "tolerations": [{}, {"operator": "Sometimes"}, {"key": "old", "effect": "Perhaps"}]
    },
    "selector": {"nodeSelector": {"": ""}},
    "no-terms": {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": []}}}},
    "terms": {
        "affinity": {
            "nodeAffinity": {
                _REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [_BAD_EXPRESSION]},
                        {"matchFields": [{"key": "spec.x", "operator": "In", "values": []}]},
                    ]
                },
                _PREFERRED: [{"weight": -1, "preference": {}}],
            }
        }
    },
    "pod-affinity": {"affinity": {"podAffinity": {_REQUIRED: [_BAD_TERM]}}},
    "pod-anti-affinity": {
        "affinity": {"podAntiAffinity": {_PREFERRED: [{"weight": 0, "podAffinityTerm": _BAD_TERM}]}}
    },
    "spread": {
        "topologySpreadConstraints": [
            {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Whenever"}
        ]
    },
    "no-such-claim": {
        "volumes": [{"name": "", "persistentVolumeClaim": {"claimName": "nothing"}}, {"name": "e"}]
    },
    "low-priority": {"priority": -(2**31)},
}

#: What is odd → spec and status of a node.
ODD_NODES: Final[dict[str, dict[str, Any]]] = {
    "offers-nothing": {},
    "offers-zero": {"status": {"allocatable": {"cpu": "0", "memory": "0", "pods": "0"}}},
    "offers-much": {"status": {"allocatable": {"cpu": "90T", "memory": "80Pi", "pods": "9999999"}}},
    "odd-taints": {"spec": {"taints": [{"key": "", "effect": "Perhaps"}, {"key": "old"}]}},
    "odd-status": {"status": {"conditions": [{"type": ""}], "images": [{"names": None}, {}]}},
}


@PROMISES.by(*DECIDING)
def check_bad_input(trial: PluginTrial) -> None:
    """Odd values of pods and nodes lead to an answer, or to an error status; nothing is raised."""
    _ask_about_odd_pods(trial)
    for name, parts in ODD_NODES.items():
        node = {"metadata": {"name": name, "uid": name, "labels": {"": ""}}, **parts}
        trial.cluster.put_node(msgspec.convert(node, Node))
        trial.world.events.append(f"node {name} comes")
    _ask_about_odd_pods(trial)


def _ask_about_odd_pods(trial: PluginTrial) -> None:
    for name, spec in ODD_PODS.items():
        metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"": ""}}
        made = msgspec.convert({"metadata": metadata, "spec": spec}, Pod)
        try:
            pod = trial.cluster.compiler.pending(made)
        except ObjectError:
            continue  # the scheduler does not try undecodable pods
        if isinstance(trial.plugin, Filter | RowFilter):
            _ask_for_details(trial, pod)
        for framework in (trial.alone, trial.together):
            evaluator, state = framework.evaluator, CycleState()
            try:
                found = evaluator.look(state, pod)
                if not isinstance(found, Diagnosis):
                    evaluator.plugin_scores(state, pod, found.rows())
            except AttemptError as failed:
                # A Status is the plugin's answer; an exception is reported like this.
                if failed.status.message.startswith(f"plugin {trial.subject.name} failed at"):
                    trial.fail(failed.status.message, pod=pod, cause=failed)
            except Exception as bug:  # noqa: BLE001 (a plugin may raise anything)
                trial.fail(f"it raised {type(bug).__name__}: {bug}", pod=pod, cause=bug)


def _ask_for_details(trial: PluginTrial, pod: PodInfo) -> None:
    try:
        _, details = trial.asker.details(pod)
    except AttemptError:
        return  # the filter has no answer, which is asked for below
    for each in details:
        if each.text.startswith(f"plugin {trial.subject.name} failed at"):
            trial.fail(each.text, pod=pod)
