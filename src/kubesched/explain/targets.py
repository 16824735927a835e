"""What ``kubesched explain`` is asked about, in kubectl's words.

    (nothing)             every pod that waits
    pod NAME, po/NAME     a pod; "pod" may be left out
    podgroup/NAME         a group of pods
    deploy/NAME, sts …    a workload: its pods

A name may have its namespace in front: ``shop/web``, ``deploy/shop/web``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from kubesched.errors import UsageError

POD: Final = "Pod"
POD_GROUP: Final = "PodGroup"

#: Kind → its names, as kubectl has them.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    POD: ("pod", "pods", "po"),
    POD_GROUP: ("podgroup", "podgroups"),
    "Deployment": ("deployment", "deployments", "deploy"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
    "Job": ("job", "jobs"),
    "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
}
_KIND_OF: Final = {name: kind for kind, names in _NAMES.items() for name in names}
#: For completion.
KIND_NAMES: Final = tuple(_KIND_OF)


class ExplainTarget(Struct, frozen=True):
    """What is explained."""

    #: "" for all waiting pods
    kind: str = ""
    #: "" for the namespace of the command line
    namespace: str = ""
    name: str = ""

    @property
    def is_workload(self) -> bool:
        """Whether it is something that makes pods."""
        return self.kind not in ("", POD, POD_GROUP)


def read_target(words: Sequence[str]) -> ExplainTarget:
    """Read the words of a command line; UsageError if they name more than one thing."""
    if not words:
        return ExplainTarget()
    first, *rest = words
    if rest:
        kind = _KIND_OF.get(first.lower(), first)
        if len(rest) > 1 or "/" in first:
            raise UsageError(
                "name one thing, as in 'kubesched explain pod NAMESPACE/NAME' or 'deploy/NAME'"
            )
        return _named(kind, rest[0])
    before, slash, after = first.partition("/")
    kind = _KIND_OF.get(before.lower(), "") if slash else ""
    if kind:
        return _named(kind, after)
    if first.lower() in _KIND_OF:
        raise UsageError(f"name the {first}, as in 'kubesched explain {first} NAMESPACE/NAME'")
    if slash and "/" in after:
        near = get_close_matches(before, KIND_NAMES, n=1)
        hint = f": did you mean {near[0]}/{after}?" if near else ""
        raise UsageError(f"there is no kind {before}{hint}")
    return _named(POD, first)


def _named(kind: str, text: str) -> ExplainTarget:
    namespace, slash, name = text.partition("/")
    if not (name if slash else namespace) or "/" in name:
        raise UsageError(f"{text!r} is not a name: write NAME or NAMESPACE/NAME")
    return ExplainTarget(kind, namespace, name) if slash else ExplainTarget(kind, "", text)
