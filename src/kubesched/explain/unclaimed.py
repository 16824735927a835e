"""Pods whose schedulerName has no profile: pending without any event.

A scheduler ignores pods of other schedulers. If there is no other one, the pod stays pending,
without a condition or an event that says so.
"""

from __future__ import annotations

from collections.abc import Collection

from kubesched.api import names
from kubesched.api.core import Pod


def is_unclaimed(pod: Pod, profiles: Collection[str]) -> bool:
    """Tell whether a pending pod is for none of these profiles, nor for another scheduler.

    Another scheduler that handles the pod has set its condition, or soon will.
    """
    return (
        bool(pod.spec.scheduler_name)
        and pod.spec.scheduler_name not in profiles
        and not pod.spec.node_name
        and not any(each.type == names.POD_SCHEDULED for each in pod.status.conditions)
    )


def unclaimed_message(pod: Pod, profiles: Collection[str]) -> str:
    """Return the message for a pod without a profile."""
    return (
        f"no profile is named {pod.spec.scheduler_name}, as the pod's schedulerName says, only "
        f"{', '.join(profiles)}: unless another scheduler takes the pod, it waits without "
        "conditions and events"
    )
