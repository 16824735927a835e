"""Where pods go, by pool and zone: for readers with more nodes than lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from kubesched.api.core import Node
from kubesched.cluster.node_order import zone_name
from kubesched.simulate.report import NodesOfPods

#: Labels by which clouds, autoscalers and people name the pool of a node, the first found counts.
POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "doks.digitalocean.com/node-pool",
    "node.kubernetes.io/pool",
    "node-pool",
    "nodepool",
    "pool",
)
_DIGITS: Final = re.compile(r"(\d+)")
_FEW: Final = 3


def places_of(node_names: Iterable[str], nodes: Mapping[str, Node]) -> tuple[NodesOfPods, ...]:
    """Group the nodes of pods, one name for each pod, by pool and zone; the fullest first."""
    by_place: dict[tuple[str, str], Counter[str]] = {}
    for name in node_names:
        node = nodes.get(name)
        where = ("", "") if node is None else (pool_of(node), zone_name(node))
        by_place.setdefault(where, Counter())[name] += 1
    found = [
        NodesOfPods(
            pool=pool,
            zone=zone,
            pods=counts.total(),
            nodes=dict(sorted(counts.items(), key=lambda each: natural(each[0]))),
        )
        for (pool, zone), counts in by_place.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.pods, each.pool, each.zone)))


def pool_of(node: Node) -> str:
    """Return the pool of a node, "" if no label names one."""
    labels = node.metadata.labels or {}
    return next((labels[label] for label in POOL_LABELS if labels.get(label)), "")


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts node-2 before node-10."""
    parts = _DIGITS.split(name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def folded(names: Iterable[str]) -> str:
    """Return a few names, or the first and the last of many."""
    ordered = sorted(set(names), key=natural)
    if len(ordered) <= _FEW:
        return ", ".join(ordered)
    return f"{ordered[0]} … {ordered[-1]}"
