"""The world outside of an engine: what it knows of it, and how it acts on it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.null_writers import NullClaimWriter
from kubesched.framework.registry import ClaimWriter, VolumeWriter
from kubesched.metrics.recorder import Metrics
from kubesched.observer import SchedulerObserver
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.extenders import BindingExtenders
from kubesched.scheduler.recorders import Recorders


class Outside(Struct, frozen=True):
    """What the engine knows of the world, and how it acts on it."""

    api_calls: ApiCalls
    volume_writer: VolumeWriter
    recorders: Recorders
    #: returns the newest version of a pod, by namespace and name
    find_pod: Callable[[str, str], Pod | None]
    #: makes the extenders that a configuration names, None if it names none
    make_extenders: Callable[[SchedulerConfiguration], BindingExtenders | None]
    clock: Clock
    metrics: Metrics
    #: told of everything that the scheduler sees and does; it has to have made the cluster
    observer: SchedulerObserver = SchedulerObserver()
    claim_writer: ClaimWriter = NullClaimWriter()
