"""A random cluster of devices, and random pods that claim them; the same for the same seed.

nodes ── pools: GPUs, NICs (two drivers that share attributes), partitions of a card, devices
         that are shared by capacity, and what a network attaches to a zone, a node or all
pods ─── claims: exact counts, all, alternatives, selectors, constraints, tolerations,
         administrators' access, shares; one claim of several pods; extended resources
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

Json = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
GPU, NIC, PART, SHARE, NET = (
    f"{each}.example.com" for each in ("gpu", "nic", "part", "share", "net")
)
#: An attribute that devices of several drivers have.
ROOT = "topology.example.com/root"
#: What the class of GPUs stands for, and what any class of NICs does.
EXTENDED_GPU = "example.com/gpu"
EXTENDED_NIC = "deviceclass.resource.kubernetes.io/nic"


# --- the cluster --------------------------------------------------------------------------------


def random_nodes(rng: random.Random, count: int) -> list[Json]:
    """Nodes of two sizes in three zones; a device plugin offers GPUs on some."""
    nodes = []
    for number in range(count):
        size = rng.choice([8, 16])
        amounts = {"cpu": str(size), "memory": f"{4 * size}Gi", "pods": "60"}
        if number % 6 == 5:
            amounts[EXTENDED_GPU] = str(rng.choice([0, 2]))
        nodes.append(
            {
                "metadata": {"name": _node(number), "labels": {ZONE: f"zone-{number % 3}"}},
                "status": {"allocatable": amounts, "capacity": amounts},
            }
        )
    return nodes


def device_classes() -> list[Json]:
    """A class for each driver, one for all devices, and one of which there are none."""
    drivers = {"gpu": GPU, "nic": NIC, "part": PART, "share": SHARE, "net": NET, "none": "none"}
    # A patch writes parameters without blanks, which would change what cannot be changed.
    config = [{"opaque": {"driver": NIC, "parameters": {}}}]
    made = [
        {
            "metadata": {"name": name},
            "spec": {
                "selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}],
                **({"extendedResourceName": EXTENDED_GPU} if name == "gpu" else {}),
                **({"config": config} if name == "nic" else {}),
            },
        }
        for name, driver in drivers.items()
    ]
    return [*made, {"metadata": {"name": "any"}, "spec": {}}]


def node_slices(rng: random.Random, number: int, generation: int) -> list[Json]:
    """What the drivers of one node publish."""
    here: Json = {"nodeName": _node(number)}
    made = _slices(_Pool(f"{_node(number)}-gpu", GPU, generation, here), _gpus(rng), rng)
    made += _slices(_Pool(f"{_node(number)}-nic", NIC, generation, here), _nics(rng), rng)
    if rng.random() < 0.6:
        made += _partitions(_Pool(f"{_node(number)}-part", PART, generation, here), rng)
    if rng.random() < 0.6:
        made += _slices(_Pool(f"{_node(number)}-share", SHARE, generation, here), _shared(rng), rng)
    return made


def network_slices(rng: random.Random, nodes: int, generation: int) -> list[Json]:
    """What is attached to a zone, to all nodes, or by device to one node or to several."""
    made: list[Json] = []
    for number in range(2):
        in_zone: Json = {"nodeSelector": _in_zone(number)}
        made += _slices(_Pool(f"zone-{number}", NET, generation, in_zone), _net(rng, 3), rng)
    made += _slices(_Pool("everywhere", NET, generation, {"allNodes": True}), _net(rng, 3), rng)
    devices = _net(rng, 6)
    for device in devices:
        places: list[Json] = [
            {"allNodes": True},
            {"nodeName": _node(rng.randrange(nodes))},
            {"nodeSelector": _in_zone(rng.randrange(3))},
        ]
        device.update(rng.choice(places))
    each: Json = {"perDeviceNodeSelection": True}
    return made + _slices(_Pool("by-device", NET, generation, each), devices, rng)


def taint_rule(rng: random.Random, number: int, nodes: int) -> Json:
    """A rule that taints a device, a pool or, for a device name, some of each pool."""
    selector: Json = {"driver": rng.choice([GPU, NIC, NET])}
    if rng.random() < 0.7:
        selector = {"driver": GPU, "pool": f"{_node(rng.randrange(nodes))}-gpu"}
    if rng.random() < 0.7:
        selector["device"] = f"{rng.choice(['gpu', 'nic', 'net'])}-{rng.randrange(3)}"
    spec = {"deviceSelector": selector, "taint": _taint(rng)}
    return {"metadata": {"name": f"rule-{number}"}, "spec": spec}


def _node(number: int) -> str:
    return f"node-{number:02d}"


def _in_zone(number: int) -> Json:
    terms = [{"key": ZONE, "operator": "In", "values": [f"zone-{number}"]}]
    return {"nodeSelectorTerms": [{"matchExpressions": terms}]}


class _Pool(NamedTuple):
    name: str
    driver: str
    generation: int
    #: which nodes see it
    where: Json

    def slice(self, letter: str, count: int, **spec: Any) -> Json:
        """One of so many slices."""
        pool = {
            "name": self.name,
            "generation": self.generation,
            "resourceSliceCount": count,
        }
        return {
            "metadata": {"name": f"{self.name}-{letter}"},
            "spec": {"driver": self.driver, "pool": pool, **self.where, **spec},
        }


def _slices(pool: _Pool, devices: list[Json], rng: random.Random) -> list[Json]:
    """The slices of one pool: one or two, in either order; sometimes one is missing or repeats."""
    parts = [devices]
    if len(devices) > 1 and rng.random() < 0.4:
        middle = rng.randrange(1, len(devices))
        parts = [devices[middle:], devices[:middle]]
        if rng.random() < 0.05:
            parts[1] = [*parts[1], parts[0][0]]  # a driver that contradicts itself
    count = len(parts) + (rng.random() < 0.03)
    return [
        pool.slice(letter, count, devices=part)
        for letter, part in zip("ab", parts, strict=False)
        if part
    ]


def _taint(rng: random.Random) -> Json:
    effect = rng.choice(["NoSchedule", "NoSchedule", "NoExecute", "None"])
    return {"key": rng.choice(["worn", "hot"]), "value": rng.choice(["a", "b"]), "effect": effect}


def _taints(rng: random.Random) -> Json:
    return {"taints": [_taint(rng)]} if rng.random() < 0.15 else {}


def _gpus(rng: random.Random) -> list[Json]:
    made = []
    for number in range(rng.randrange(2, 7)):
        attributes: Json = {
            "model": {"string": rng.choice(["a100", "t4", "h100"])},
            "numa": {"int": rng.randrange(2)},
            "firmware": {"version": rng.choice(["1.0.0", "1.2.3", "2.0.0-rc.1"])},
            ROOT: {"string": f"root-{rng.randrange(3)}"},
        }
        if rng.random() < 0.8:
            attributes["ecc"] = {"bool": rng.random() < 0.5}
        memory = {"memory": {"value": rng.choice(["16Gi", "40Gi", "80Gi"])}}
        made.append(
            {
                "name": f"gpu-{number}",
                "attributes": attributes,
                "capacity": memory,
                **_taints(rng),
            }
        )
    return made


def _nics(rng: random.Random) -> list[Json]:
    return [
        {
            "name": f"nic-{number}",
            "attributes": {
                "speed": {"int": rng.choice([25, 100])},
                ROOT: {"string": f"root-{rng.randrange(3)}"},
            },
            **_taints(rng),
        }
        for number in range(rng.randrange(4))
    ]


def _net(rng: random.Random, count: int) -> list[Json]:
    return [
        {
            "name": f"net-{number}",
            "attributes": {"kind": {"string": rng.choice(["disk", "fpga"])}},
            **_taints(rng),
        }
        for number in range(count)
    ]


def _partitions(pool: _Pool, rng: random.Random) -> list[Json]:
    """Partitions of one or two cards, of which only so many fit at a time."""
    devices: list[Json] = []
    cards = rng.randrange(1, 3)
    for card in range(cards):
        for size, count in ((4, 1), (2, 2), (1, 3)):
            counters = {"slices": {"value": str(size)}, "memory": {"value": f"{10 * size}Gi"}}
            devices += [
                {
                    "name": f"card-{card}-{size}-{number}",
                    "attributes": {"size": {"int": size}, "card": {"int": card}},
                    "consumesCounters": [{"counterSet": f"card-{card}", "counters": counters}],
                }
                for number in range(count)
            ]
    rng.shuffle(devices)
    amounts = {"slices": {"value": "4"}, "memory": {"value": "40Gi"}}
    sets = [{"name": f"card-{card}", "counters": amounts} for card in range(cards)]
    return [
        pool.slice("a", 2, devices=devices),
        pool.slice("b", 2, sharedCounters=sets),
    ]


def _shared(rng: random.Random) -> list[Json]:
    ranged = {"default": "2Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "8Gi"}}
    values = {"default": "1", "validValues": ["1", "2", "4"]}
    made = []
    for number in range(rng.randrange(1, 3)):
        memory: Json = {"value": rng.choice(["8Gi", "10Gi"])}
        lanes: Json = {"value": "4"}
        is_shared = rng.random() < 0.8
        if is_shared and rng.random() < 0.8:
            memory["requestPolicy"] = ranged
        if is_shared and rng.random() < 0.7:
            lanes["requestPolicy"] = values
        made.append(
            {
                "name": f"share-{number}",
                "allowMultipleAllocations": is_shared,
                "attributes": {"kind": {"string": rng.choice(["fast", "slow"])}},
                "capacity": {"memory": memory, "lanes": lanes},
            }
        )
    return made


# --- claims -------------------------------------------------------------------------------------

_SELECTORS = {
    "gpu": (
        f'device.attributes["{GPU}"].model in ["a100", "h100"]',
        f'device.attributes["{GPU}"].numa == 1',
        f'device.attributes["{GPU}"].?ecc.orValue(false)',
        f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
        f'device.attributes["{GPU}"].firmware.isGreaterThan(semver("1.1.0"))',
        'device.attributes["topology.example.com"].root.endsWith("1")',
    ),
    "nic": (f'device.attributes["{NIC}"].speed >= 100',),
    "part": (
        f'device.attributes["{PART}"].size == 1',
        f'device.attributes["{PART}"].size >= 2',
        f'device.attributes["{PART}"].card == 0',
    ),
    "share": (
        f'device.attributes["{SHARE}"].kind == "fast"',
        "device.allowMultipleAllocations",
    ),
    "net": (f'device.attributes["{NET}"].kind == "disk"',),
    "none": ("true",),
    "any": (
        f'device.driver == "{GPU}" || device.driver == "{NIC}"',
        f'device.driver in ["{NIC}", "{NET}"]',
    ),
}
#: Not all GPUs have the attribute: evaluating this may fail.
_FAILING = f'device.attributes["{GPU}"].ecc'
_CLASSES = [*["gpu"] * 5, *["nic"] * 2, *["part"] * 2, *["share"] * 2, *["net"] * 2, "any"]


def random_claim(rng: random.Random) -> Json:
    """The spec of a claim: one request to three, with constraints and configuration."""
    requests = [_request(rng, f"r{number}") for number in range(rng.choice([1, 1, 1, 1, 2, 3]))]
    devices: Json = {"requests": requests}
    if rng.random() < 0.35:
        devices["constraints"] = [_constraint(rng, requests) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.2:
        names = rng.sample(_names(requests), 1) if rng.random() < 0.7 else []
        opaque = {"driver": GPU, "parameters": {}}
        devices["config"] = [{"requests": names, "opaque": opaque}]
    return {"devices": devices}


def _request(rng: random.Random, name: str) -> Json:
    if rng.random() < 0.25:
        count = rng.randrange(2, 5)
        return {
            "name": name,
            "firstAvailable": [
                {"name": f"s{number}", **_asked(rng, 4 - number)} for number in range(count)
            ],
        }
    exactly = _asked(rng, 3)
    if rng.random() < 0.05:
        exactly["adminAccess"] = True
    return {"name": name, "exactly": exactly}


def _asked(rng: random.Random, most: int) -> Json:
    """What is asked for, by a request or by one of its alternatives."""
    of = rng.choice(_CLASSES) if rng.random() > 0.01 else "none"
    expressions = rng.sample(_SELECTORS[of], rng.randrange(min(3, 1 + len(_SELECTORS[of]))))
    if of == "gpu" and rng.random() < 0.03:
        expressions = [_FAILING]
    asked: Json = {
        "deviceClassName": of,
        "selectors": [{"cel": {"expression": each}} for each in expressions],
    }
    if rng.random() < 0.08 and of != "net":
        asked["allocationMode"] = "All"
    else:
        asked["count"] = rng.choice([1, 1, 1, rng.randint(1, most)])
    if rng.random() < 0.3:
        asked["tolerations"] = [_toleration(rng)]
    if of == "share" and rng.random() < 0.6:
        wishes = {
            "memory": rng.choice(["500Mi", "1Gi", "1500Mi", "3Gi", "9Gi"]),
            "lanes": rng.choice(["1", "2", "3"]),
        }
        kept = rng.sample(sorted(wishes), rng.choice([1, 2]))
        asked["capacity"] = {"requests": {key: wishes[key] for key in kept}}
    return asked


def _toleration(rng: random.Random) -> Json:
    return rng.choice(
        [
            {"operator": "Exists"},
            {"key": "worn", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "hot", "operator": "Equal", "value": "a"},
        ]
    )


def _constraint(rng: random.Random, requests: list[Json]) -> Json:
    kind = rng.choice(["matchAttribute", "matchAttribute", "distinctAttribute"])
    made: Json = {kind: rng.choice([ROOT, ROOT, f"{GPU}/numa", f"{GPU}/model", f"{PART}/card"])}
    if rng.random() < 0.6:
        names = _names(requests)
        made["requests"] = rng.sample(names, rng.randint(1, len(names)))
    return made


def _names(requests: Iterable[Json]) -> list[str]:
    """The names by which constraints and configurations may refer to requests."""
    names = []
    for each in requests:
        names.append(each["name"])
        names += [f"{each['name']}/{sub['name']}" for sub in each.get("firstAvailable", ())]
    return names


# --- pods ---------------------------------------------------------------------------------------


def random_pod(rng: random.Random, name: str, claims: list[str]) -> Json:
    """A pod with these claims, or with extended resources if there are none."""
    resources = {"requests": {"cpu": rng.choice(["50m", "100m", "250m", "500m"])}}
    container: Json = {"name": "c", "image": "i", "resources": resources}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if rng.random() < 0.15:
        spec["nodeSelector"] = {ZONE: f"zone-{rng.randrange(3)}"}
    if claims:
        references = [{"name": each, "resourceClaimName": each} for each in claims]
        spec["resourceClaims"] = references
        resources["claims"] = [{"name": each} for each in claims]  # type: ignore[assignment]
    if not claims or rng.random() < 0.03:
        spec["containers"] = [_asking(rng, {**container, "name": f"c{each}"}) for each in range(2)]
        if rng.random() < 0.5:
            spec["initContainers"] = [_asking(rng, {"name": "i", "image": "i"})]
    return {"metadata": {"name": name}, "spec": spec}


def _asking(rng: random.Random, container: Json) -> Json:
    """A container that asks for extended resources."""
    amounts = {
        each: str(rng.randint(1, 2)) for each in (EXTENDED_GPU, EXTENDED_NIC) if rng.random() < 0.7
    }
    resources = dict(container.get("resources", {}))
    resources["requests"] = {**resources.get("requests", {}), **amounts}
    resources["limits"] = amounts
    return {**container, "resources": resources}
