"""Pods that name a scheduler which no profile is for: the classic pending without events.

A scheduler leaves pods of others alone and says nothing about them. If there is no other one, the
pod waits for ever, and has neither a condition nor an event that says so.
"""

from __future__ import annotations

from collections.abc import Collection

from kubesched.api import names
from kubesched.api.core import Pod


def is_unclaimed(pod: Pod, profiles: Collection[str]) -> bool:
    """Tell whether a pod without a node is for none of these profiles, nor for another scheduler.

    Another scheduler that takes care of the pod has told so in its condition, or soon will.
    """
    return (
        bool(pod.spec.scheduler_name)
        and pod.spec.scheduler_name not in profiles
        and not pod.spec.node_name
        and not any(each.type == names.POD_SCHEDULED for each in pod.status.conditions)
    )


def unclaimed_message(pod: Pod, profiles: Collection[str]) -> str:
    """Say that no profile is for a pod."""
    return (
        f"no profile is named {pod.spec.scheduler_name}, as the pod's schedulerName says, only "
        f"{', '.join(profiles)}: unless another scheduler takes the pod, it waits without "
        "conditions and events"
    )
