"""A cluster as ``kubesched snapshot`` wrote it to a file, for tests.

    gzip, one JSON object a line ──> Cluster (columns)
                       └──────────> pods that want a node

`kubesched.snapshot` reads the same files for commands; it is built on top of this package's
neighbours and cannot be used from here. A test writes with that one and reads with this one.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kubesched.api import names, storage, workloads
from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError, UsageError

API_VERSION = "kubesched/v1"


class _Line(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


_identify = msgspec.json.Decoder(_Line).decode


def fill_from(cluster: Cluster, path: Path) -> list[Pod]:
    """Put what a snapshot holds into a cluster; return the pods that want a node.

    Raises UsageError if the file is no snapshot, or holds what cannot be read: a test on half a
    cluster proves nothing.
    """
    put, pending = _puts(cluster), list[Pod]()
    for number, line in enumerate(_lines(path), start=2):
        try:
            kind = _identify(line).kind
            if kind == "Pod":
                _take_pod(cluster, msgspec.json.decode(line, type=Pod), pending)
            elif kind in put:
                type_, take = put[kind]
                take(msgspec.json.decode(line, type=type_))
        except (msgspec.MsgspecError, ObjectError) as unreadable:
            raise UsageError(f"{path}, line {number}: {unreadable}") from None
    return pending


def _lines(path: Path) -> list[bytes]:
    """Return all lines but the first, which must say what the file is."""
    try:
        header, *lines = gzip.decompress(path.read_bytes()).splitlines()
        said = _identify(header)
    except OSError as failed:
        # A file that is not compressed is an OSError without a number.
        reason = failed.strerror or "it is no snapshot; for manifests use from_manifests"
        raise UsageError(f"cannot read {path}: {reason}") from None
    except (EOFError, zlib.error):
        raise UsageError(f"{path} is cut off or damaged: take the snapshot again") from None
    except (ValueError, msgspec.MsgspecError):
        raise UsageError(f"{path} is no snapshot: its first line does not say so") from None
    if (said.api_version, said.kind) != (API_VERSION, "Snapshot"):
        raise UsageError(f"{path} is no snapshot of {API_VERSION}: its first line does not say so")
    return lines


def _take_pod(cluster: Cluster, pod: Pod, pending: list[Pod]) -> None:
    if pod.status.phase in (names.PHASE_SUCCEEDED, names.PHASE_FAILED):
        return
    if pod.spec.node_name:
        cluster.put_pod(pod)
        return
    pending.append(pod)
    if pod.status.nominated_node_name:
        info = cluster.compiler.pending(pod)
        cluster.nominator.nominate(info, pod.status.nominated_node_name)


def _puts(cluster: Cluster) -> Mapping[str, tuple[type[Any], Callable[[Any], object]]]:
    """Return the type of each kind but pods, and who takes its objects."""
    kept = cluster.storage
    return {
        "Node": (Node, cluster.put_node),
        "Namespace": (Namespace, cluster.put_namespace),
        "Service": (workloads.Service, cluster.workloads.put),
        "ReplicationController": (workloads.ReplicationController, cluster.workloads.put),
        "ReplicaSet": (workloads.ReplicaSet, cluster.workloads.put),
        "StatefulSet": (workloads.StatefulSet, cluster.workloads.put),
        "PodDisruptionBudget": (PodDisruptionBudget, cluster.budgets.put),
        "StorageClass": (storage.StorageClass, kept.classes.put),
        "CSINode": (storage.CSINode, kept.csi_nodes.put),
        "CSIDriver": (storage.CSIDriver, kept.drivers.put),
        "CSIStorageCapacity": (storage.CSIStorageCapacity, kept.capacities.put),
        "VolumeAttachment": (storage.VolumeAttachment, kept.attachments.put),
        "PersistentVolume": (storage.PersistentVolume, kept.volumes.put),
        "PersistentVolumeClaim": (storage.PersistentVolumeClaim, kept.claims.put),
    }
