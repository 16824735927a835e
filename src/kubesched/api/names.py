"""Well-known names of Kubernetes: labels, taints, resources, conditions."""

from __future__ import annotations

from typing import Final

DEFAULT_SCHEDULER: Final = "default-scheduler"

LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
TOPOLOGY_PREFIX: Final = "topology.kubernetes.io/"
LABEL_ZONE: Final = "topology.kubernetes.io/zone"
LABEL_REGION: Final = "topology.kubernetes.io/region"
LABEL_ZONE_BETA: Final = "failure-domain.beta.kubernetes.io/zone"
LABEL_REGION_BETA: Final = "failure-domain.beta.kubernetes.io/region"

FIELD_NODE_NAME: Final = "metadata.name"

TAINT_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
TAINT_NOT_READY: Final = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
HUGEPAGES_PREFIX: Final = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"

POD_SCHEDULED: Final = "PodScheduled"
POD_REASON_UNSCHEDULABLE: Final = "Unschedulable"
POD_REASON_SCHEDULER_ERROR: Final = "SchedulerError"

PHASE_SUCCEEDED: Final = "Succeeded"
PHASE_FAILED: Final = "Failed"

DISRUPTION_TARGET: Final = "DisruptionTarget"
REASON_PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
