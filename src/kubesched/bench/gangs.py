"""Gangs: pods of which a group is bound as a whole, or not at all.

The groups exist before the first pod does; measured is the time from the first pod that is created
to the last one that is bound. Schedulers that have groups of another kind can be measured beside
these by a file that creates theirs: ``--config`` with the opcode createAny.
"""

from __future__ import annotations

from kubesched.bench import objects
from kubesched.bench.families import Numbers, Operations
from kubesched.bench.operations import CreateAny, CreateNodes, CreatePods, JsonObject

NAMESPACE = "gangs"
FEATURE_GATES = {"GenericWorkload": True}


def of_8(numbers: Numbers) -> Operations:
    """Gangs of 8 pods."""
    return _gangs(numbers, 8)


def of_256(numbers: Numbers) -> Operations:
    """Gangs of 256 pods."""
    return _gangs(numbers, 256)


def _gangs(numbers: Numbers, size: int) -> Operations:
    pods = numbers["pods"]

    def group(index: int, _count: int) -> JsonObject:
        # The last gang has the pods that are left.
        policy = {"gang": {"minCount": min(size, pods - index * size)}}
        return {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": f"gang-{index}"},
            "spec": {"schedulingPolicy": policy},
        }

    def member(index: int, _count: int) -> JsonObject:
        return objects.pod(schedulingGroup={"podGroupName": f"gang-{index // size}"})

    return (
        CreateNodes(count=numbers["nodes"], template=objects.base_node),
        CreateAny(count=-(-pods // size), template=group, namespace=NAMESPACE),
        CreatePods(count=pods, template=member, namespace=NAMESPACE, collect_metrics=True),
    )
