"""How long it takes from slices on the wire to the first decision that uses their devices.

    python -m benchmarks.known_devices [DEVICES] [ROUNDS]

Slices of eight devices, one a node, with the attributes of scheduler_perf's, encoded as the API
server sends them. Decoding, taking them over, and one decision for a pod that claims a device are
timed, each in CPU time.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise

import msgspec

from kubesched import garbage
from kubesched.api.meta import ObjectMeta
from kubesched.api.names import DEFAULT_SCHEDULER
from kubesched.api.resource import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from kubesched.bench import decision_devices
from kubesched.bench.decisions import roomy_cluster
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.scheduler.dry_run import DryRun

PER_NODE = 8
DRIVER = "gpu.example.com"


def encoded_slice(number: int) -> bytes:
    """A slice of one node, as JSON."""
    return msgspec.json.encode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"slice-{number}", "uid": f"uid-{number}", "resourceVersion": "1"},
            "spec": {
                "driver": DRIVER,
                "nodeName": f"node-{number}",
                "pool": {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1},
                "devices": [_device(number, place) for place in range(PER_NODE)],
            },
        }
    )


def _device(number: int, place: int) -> dict[str, object]:
    address = f"0000:0{place}:00.0"
    texts = {
        "driver": "xe",
        "family": "Arc Pro B-Series",
        "health": "Healthy",
        "model": "B60",
        "pciAddress": address,
        "pciId": "0xe211",
        "pciRoot": f"0{place % 2}",
        "resource.kubernetes.io/pciBusID": address,
        "resource.kubernetes.io/pciRoot": f"pci0000:0{place % 2}",
        "type": "gpu",
        "uuid": f"{number}-{place}",
    }
    return {
        "name": f"gpu-{place}",
        "attributes": {
            **{name: {"string": value} for name, value in texts.items()},
            "driverVersion": {"version": "1.2.3"},
            "sriov": {"bool": True},
        },
        "capacity": {"memory": {"value": "24480Mi"}, "millicores": {"value": "1k"}},
    }


def measure(devices: int) -> tuple[float, float, float]:
    """Return the seconds of decoding, taking over, and deciding."""
    nodes = devices // PER_NODE
    wire = [encoded_slice(number) for number in range(nodes)]
    cluster = roomy_cluster(nodes, 0)
    expression = (
        f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "B60" && '
        f'device.attributes["{DRIVER}"].driverVersion.major() >= 1'
    )
    selector = DeviceSelector(cel=CELDeviceSelector(expression=expression))
    cluster.devices.classes.put(
        DeviceClass(metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(selectors=(selector,)))
    )
    pod = decision_devices.one_device(0)
    (reference,) = pod.spec.resource_claims
    meta = ObjectMeta(name=reference.resource_claim_name or "", namespace=pod.metadata.namespace)
    exactly = ExactDeviceRequest(device_class_name="gpu", allocation_mode="ExactCount", count=1)
    asked = DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=exactly),))
    cluster.devices.claims.put(ResourceClaim(metadata=meta, spec=ResourceClaimSpec(devices=asked)))
    gates = FeatureGates.of({})
    engine = DryRun(cluster, SchedulerConfiguration.default(gates), gates, seed=1)
    garbage.freeze()
    decode = msgspec.json.Decoder(ResourceSlice).decode
    times = [time.process_time()]
    slices = [decode(each) for each in wire]
    times.append(time.process_time())
    for each in slices:
        cluster.devices.slices.put(each)
    times.append(time.process_time())
    info = cluster.compiler.pending(pod)
    decision = engine.cycle.schedule(engine.framework_of(DEFAULT_SCHEDULER), info)
    times.append(time.process_time())
    if not decision.node_name:
        raise RuntimeError("the claim cannot be served")
    decoding, taking, deciding = (end - start for start, end in pairwise(times))
    return decoding, taking, deciding


def main(arguments: list[str]) -> None:
    """Print the best round."""
    devices = int(arguments[0]) if arguments else 50_000
    rounds = int(arguments[1]) if len(arguments) > 1 else 3
    decoding, taking, deciding = min((measure(devices) for _ in range(rounds)), key=sum)
    print(
        f"{devices} devices: decoded in {decoding:.2f} s, taken over in {taking:.2f} s, "
        f"first decision in {deciding:.2f} s, {decoding + taking + deciding:.2f} s in all"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
