"""Where pods are: in the queue, nominated to a node, on a node, or on their way to be bound."""

from __future__ import annotations

from msgspec import Struct

from kubesched.cluster.cluster import Cluster
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.nominations import Nominations


class SchedulerState(Struct, frozen=True):
    """What scheduling and binding cycles read and change."""

    cluster: Cluster
    queue: SchedulingQueue
    nominations: Nominations
    #: pods that have a node and wait for the permission of plugins
    waiting: WaitingPods
    #: pods that PreBind plugins are at work for
    pre_binding: PreBindingPods
