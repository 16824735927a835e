"""The state of pods: in the queue, nominated to a node, on a node, or being bound."""

from __future__ import annotations

from msgspec import Struct

from kubesched.cluster.cluster import Cluster
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.nominations import Nominations


class SchedulerState(Struct, frozen=True):
    """The state that scheduling and binding cycles share."""

    cluster: Cluster
    queue: SchedulingQueue
    nominations: Nominations
    #: assumed pods that wait on Permit
    waiting: WaitingPods
    #: pods that PreBind plugins are at work for
    pre_binding: PreBindingPods
