"""Frameworks that only decide: writing is refused, with a hint at what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubesched.api.core import PodExtendedResourceClaimStatus
from kubesched.api.resource import ResourceClaimConsumerReference
from kubesched.cluster.pod_info import PodCompiler
from kubesched.errors import PluginError
from kubesched.framework.null_writers import (
    NullBinder,
    NullClaimWriter,
    NullEvictor,
    NullVolumeWriter,
)
from tests.support import device_objects, volume_scheduling
from tests.support.objects import pod

KEYS = [("default", "c"), ("default", "d")]
CLAIM = device_objects.claim("c", device_objects.request())
BINDER, VOLUMES, CLAIMS = NullBinder(), NullVolumeWriter(), NullClaimWriter()
WRITES: dict[str, tuple[Callable[[], Coroutine[Any, Any, object]], str, str]] = {
    "a pod": (
        lambda: BINDER.bind(PodCompiler().pending(pod("p")), "n1"),
        "default/p cannot be bound to n1",
        "pass binder to build_framework",
    ),
    "a volume": (
        lambda: VOLUMES.write_volume(volume_scheduling.volume("v")),
        "volume v cannot be bound",
        "pass volume_writer to build_framework",
    ),
    "a claim to a volume": (
        lambda: VOLUMES.write_claim(volume_scheduling.claim("c")),
        "claim default/c cannot be bound",
        "pass volume_writer to build_framework",
    ),
    "a wait for volumes": (
        lambda: VOLUMES.poll(lambda: True, claims=KEYS, timeout_s=1),
        "2 claims cannot be bound",
        "pass volume_writer to build_framework",
    ),
    "a claim to devices": (
        lambda: CLAIMS.bind(
            CLAIM, None, ResourceClaimConsumerReference(uid="u"), has_timestamp=False
        ),
        "claim default/c cannot be bound",
        "pass claim_writer to build_framework",
    ),
    "a new claim": (
        lambda: CLAIMS.create(CLAIM),
        "a claim in default cannot be bound",
        "pass claim_writer to build_framework",
    ),
    "extended resources": (
        lambda: CLAIMS.map_extended_resources(pod("p"), PodExtendedResourceClaimStatus()),
        "pod default/p cannot be bound",
        "pass claim_writer to build_framework",
    ),
    "resources of the node": (
        lambda: CLAIMS.claim_resources(pod("p"), ()),
        "pod default/p cannot be bound",
        "pass claim_writer to build_framework",
    ),
    "a wait for devices": (
        lambda: CLAIMS.poll(lambda: True, claims=KEYS, timeout_s=1, interval_s=1),
        "2 claims cannot be bound",
        "pass claim_writer to build_framework",
    ),
}


@pytest.mark.parametrize("what", WRITES)
def test_writing_is_refused_with_a_hint(what: str) -> None:
    write, wanted, hint = WRITES[what]

    with pytest.raises(PluginError) as refused:
        asyncio.run(write())

    assert str(refused.value).startswith(wanted)
    assert hint in str(refused.value)


def test_no_pod_is_being_evicted() -> None:
    assert not NullEvictor().is_evicting_for("p")
    assert list(NullEvictor().preemptors()) == []  # type: ignore[call-overload]  # a tuple
