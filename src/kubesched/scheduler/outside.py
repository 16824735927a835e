"""The dependencies that an engine gets from its owner: client, informers, clock, observer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.null_writers import NullClaimWriter
from kubesched.framework.observing import WorkTracer
from kubesched.framework.registry import ClaimWriter, VolumeWriter
from kubesched.metrics.recorder import Metrics
from kubesched.observer import SchedulerObserver
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.recorders import Recorders

if TYPE_CHECKING:
    from kubesched.scheduler.extenders import BindingExtenders


class Outside(Struct, frozen=True):
    """What an engine reads from, writes to and reports to."""

    api_calls: ApiCalls
    volume_writer: VolumeWriter
    recorders: Recorders
    #: returns the newest version of a pod, by namespace and name
    find_pod: Callable[[str, str], Pod | None]
    #: creates the extenders of a configuration, None if it has none
    make_extenders: Callable[[SchedulerConfiguration], BindingExtenders | None]
    clock: Clock
    metrics: Metrics
    #: notified of everything that the scheduler sees and does; it must have created the cluster
    observer: SchedulerObserver = SchedulerObserver()
    claim_writer: ClaimWriter = NullClaimWriter()
    #: traces the work of plugins; None if nothing is traced
    tracer: WorkTracer | None = None
