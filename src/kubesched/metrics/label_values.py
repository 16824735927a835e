"""Label values that dashboards and alerts select by."""

from __future__ import annotations

from typing import Final

# result of schedule_attempts and scheduling_attempt_duration, and of their pod group counterparts
SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"

# operation of goroutines, besides extension points and plugins that work in parallel
BINDING: Final = "binding"

# result of preemption_goroutines_* and preemption_execution_duration,
# status of dynamic_resource_allocation_resourceclaim_creates and dra_bindingconditions_*
SUCCESS: Final = "success"

# result of pre_queueing_hint_evaluations
ALL_PODS: Final = "all_pods"
NARROWED: Final = "narrowed"

# result of binding_checks
FITS: Final = "fits"
REJECTED: Final = "rejected"
CHECK_FAILED: Final = "failed"

# type of cache_size
ASSUMED_PODS: Final = "assumed_pods"
PODS: Final = "pods"
NODES: Final = "nodes"

#: from here on attempts are not distinguished
MANY_ATTEMPTS: Final = 15
_ATTEMPTS: Final = (*map(str, range(MANY_ATTEMPTS)), f"{MANY_ATTEMPTS}+")
_KNOWN_USERS: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)


def attempts_label(attempts: int) -> str:
    """Return the label of ``pod_scheduling_sli_duration``: "1" to "14", then "15+"."""
    return _ATTEMPTS[min(attempts, MANY_ATTEMPTS)]


def user_label(username: str) -> str:
    """Return the label of ``authenticated_user_requests``: a few kinds of users, no names."""
    if username in _KNOWN_USERS:
        return username
    return "email_id" if "@" in username else "other"
