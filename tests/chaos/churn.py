"""What happens in a cluster meanwhile: pods, gangs, claims and nodes come, change and go, by seed.

Objects are changed through the API server itself, past the proxy. A request that fails because the
API server or etcd is down is made again later, as a controller would; so the work waits, and the
rest of the run goes on.

The churn also does what controllers would: it releases claims of pods that are gone, deletes pods
of deleted nodes, and replaces members of gangs.
"""

from __future__ import annotations

import http.client
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tests.integration.claim_controller import DEVICES, claims_path, release_claims
from tests.integration.control_plane import JsonObject, PlaneApiError
from tests.integration.pod_groups import create_gang, gang_member, groups_path
from tests.integration.scheduler_process import all_pods, node, patch_node, pod, pods_path

from .judge import NEVER_FITS
from .plane import ChaosPlane

NAMESPACE: Final = "chaos"
NODES: Final = 12
ZONES: Final = 3
DEVICES_OF_A_NODE: Final = 2
#: At most so many pods at a time: with all nodes as they were, they all fit.
MOST_PODS: Final = 60
MOST_GANGS: Final = 6
LARGEST_CPU: Final = "6"
MOST_CLAIMS: Final = NODES * DEVICES_OF_A_NODE // 2
DRIVER: Final = "gpu.example.com"

#: What an API server that is not there, or has no etcd, answers with.
Unavailable = (OSError, http.client.HTTPException)


class Churn:
    """Changes a cluster at random."""

    def __init__(self, plane: ChaosPlane, seed: int) -> None:
        self._plane = plane
        self._rng = random.Random(seed)
        self._made = 0
        #: name → how many members it is to have
        self._gangs: dict[str, int] = {}
        self._nodes = [f"n{number}" for number in range(NODES)]
        #: nodes that were deleted, to be created again
        self._lost: list[str] = []
        self.steps = 0
        self._actions: list[tuple[Callable[[], None], int]] = [
            (self._create_pod, 8),
            (self._create_claiming_pod, 3),
            (self._create_gang, 2),
            (self._end_pod, 4),
            (self._delete_pod, 4),
            (self._delete_gang, 1),
            (self._resize_node, 2),
            (self._cordon_node, 1),
            (self._lose_node, 1),
            (self._return_node, 2),
        ]

    # --- the cluster ------------------------------------------------------------------------

    def build(self) -> None:
        """Create the nodes, their devices and a pod that can never be placed."""
        plane = self._plane
        plane.create_namespace(NAMESPACE)
        selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        body = {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}
        plane.request("POST", f"{DEVICES}/deviceclasses", body)
        for name in self._nodes:
            self._create_node(name)
            self._publish(name)
        large = pod("never", requests={"cpu": "100"}, labels={NEVER_FITS: "true"})
        plane.request("POST", pods_path(NAMESPACE), large)

    def step(self) -> bool:
        """Do something; return False if the API server was not there for it."""
        actions, weights = zip(*self._actions, strict=True)
        action = self._rng.choices(actions, weights)[0]
        try:
            with _raced():
                action()
            self.tidy()
        except Unavailable:
            return False
        except PlaneApiError as error:
            if error.status < 500 and error.status != 429:
                raise
            return False
        self.steps += 1
        return True

    def restore(self) -> None:
        """Give all nodes back what they had: from now on, everything fits."""
        while self._lost:
            self._return_node()
        for name in self._nodes:
            patch_node(self._plane, name, {"spec": {"unschedulable": None}})
            self._set_cpu(name, LARGEST_CPU)
        self.tidy()

    def tidy(self) -> None:
        """Do what controllers would."""
        there = set(self._nodes) - set(self._lost)
        members: Counter[str] = Counter()
        for each in all_pods(self._plane, NAMESPACE):
            on, gang = each["spec"].get("nodeName"), _gang_of(each)
            if on and on not in there:
                self._remove(each)
            elif gang is not None:
                members[gang] += 1
        for gang, size in self._gangs.items():
            with _raced():
                create_gang(self._plane, NAMESPACE, gang, size)
            for _ in range(size - members[gang]):
                member = gang_member(self._name(gang), gang, cpu="250m")
                self._plane.request("POST", pods_path(NAMESPACE), member)
        self._release()

    def settled(self) -> bool:
        """Tell whether every pod that can be placed has a node."""
        return all(
            each["spec"].get("nodeName")
            or each["status"].get("phase") in ("Succeeded", "Failed")
            or NEVER_FITS in each["metadata"].get("labels", {})
            for each in all_pods(self._plane, NAMESPACE)
        )

    # --- pods -------------------------------------------------------------------------------

    def _create_pod(self) -> None:
        if len(self._living()) >= MOST_PODS:
            return
        spread = {
            "maxSkew": 5,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        more: JsonObject = {"topologySpreadConstraints": [spread]} if self._flip() else {}
        cpu = f"{self._rng.choice((50, 100, 250, 500))}m"
        made = pod(self._name("p"), requests={"cpu": cpu}, labels={"app": "web"}, **more)
        self._plane.request("POST", pods_path(NAMESPACE), made)

    def _create_claiming_pod(self) -> None:
        path = claims_path(NAMESPACE)
        if len(self._plane.request("GET", path)["items"]) >= MOST_CLAIMS:
            return
        name = self._name("d")
        exactly = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        spec = {"devices": {"requests": [exactly]}}
        self._plane.request("POST", path, {"metadata": {"name": name}, "spec": spec})
        claimed = [{"name": "c", "resourceClaimName": name}]
        made = pod(name, requests={"cpu": "50m"}, resourceClaims=claimed)
        self._plane.request("POST", pods_path(NAMESPACE), made)

    def _create_gang(self) -> None:
        if len(self._gangs) < MOST_GANGS:
            self._gangs[self._name("g")] = self._rng.randint(2, 6)

    def _end_pod(self) -> None:
        running = [each for each in self._living() if each["spec"].get("nodeName")]
        if running:
            name = self._rng.choice(running)["metadata"]["name"]
            path = f"{pods_path(NAMESPACE, name)}/status"
            self._ask("PATCH", path, {"status": {"phase": "Succeeded"}})

    def _delete_pod(self) -> None:
        if living := self._living():
            self._remove(self._rng.choice(living))

    def _delete_gang(self) -> None:
        if not self._gangs:
            return
        gang = self._rng.choice(sorted(self._gangs))
        for each in all_pods(self._plane, NAMESPACE):
            if _gang_of(each) == gang:
                self._remove(each)
        self._ask("DELETE", groups_path(NAMESPACE, gang))
        del self._gangs[gang]

    def _living(self) -> list[JsonObject]:
        """Return the pods that are of no gang, have not ended, and may be placed."""
        return [
            each
            for each in all_pods(self._plane, NAMESPACE)
            if _gang_of(each) is None
            and each["status"].get("phase") not in ("Succeeded", "Failed")
            and NEVER_FITS not in each["metadata"].get("labels", {})
        ]

    def _remove(self, of: JsonObject) -> None:
        path = pods_path(NAMESPACE, of["metadata"]["name"])
        self._ask("DELETE", path, {"gracePeriodSeconds": 0})

    def _release(self) -> None:
        """Take back what pods that are gone had, and delete claims that are for no pod."""
        known = {
            each["metadata"]["uid"]: each
            for each in all_pods(self._plane, NAMESPACE)
            if each["status"].get("phase") not in ("Succeeded", "Failed")
        }
        names = {each["metadata"]["name"] for each in known.values()}
        for claim in self._plane.request("GET", claims_path(NAMESPACE))["items"]:
            users = (claim.get("status") or {}).get("reservedFor") or []
            gone = {each["uid"] for each in users} - known.keys()
            with _raced():
                if gone:
                    release_claims(self._plane, NAMESPACE, gone)
                if claim["metadata"]["name"] not in names:
                    self._plane.purge_object(claims_path(NAMESPACE, claim["metadata"]["name"]))

    # --- nodes ------------------------------------------------------------------------------

    def _create_node(self, name: str) -> None:
        zone = f"zone-{int(name[1:]) % ZONES}"
        made = node(name, labels={"topology.kubernetes.io/zone": zone})
        self._plane.request("POST", "/api/v1/nodes", made)

    def _publish(self, name: str) -> None:
        devices = [{"name": f"{name}-gpu-{number}"} for number in range(DEVICES_OF_A_NODE)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": devices}
        body = {"metadata": {"name": f"slice-{name}"}, "spec": spec}
        self._plane.request("POST", f"{DEVICES}/resourceslices", body)

    def _resize_node(self) -> None:
        self._set_cpu(self._present(), self._rng.choice(("1", "2", "4", LARGEST_CPU)))

    def _set_cpu(self, name: str, cpu: str) -> None:
        room = {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}
        self._ask_node(name, {"status": room}, status=True)

    def _cordon_node(self) -> None:
        self._ask_node(self._present(), {"spec": {"unschedulable": self._flip() or None}})

    def _lose_node(self) -> None:
        if len(self._lost) < NODES // 4:
            name = self._present()
            self._ask("DELETE", f"/api/v1/nodes/{name}")
            self._lost.append(name)

    def _return_node(self) -> None:
        if self._lost:
            with _raced():
                self._create_node(self._lost[-1])
            self._lost.pop()

    def _present(self) -> str:
        return self._rng.choice([name for name in self._nodes if name not in self._lost])

    # --- requests ---------------------------------------------------------------------------

    def _flip(self) -> bool:
        return self._rng.random() < 0.5

    def _name(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}-{self._made}"

    def _ask_node(self, name: str, patch: JsonObject, *, status: bool = False) -> None:
        with _raced():
            patch_node(self._plane, name, patch, status=status)

    def _ask(self, method: str, path: str, body: JsonObject | None = None) -> None:
        """Send a request about an object that may be gone by now."""
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        with _raced():
            self._plane.request(method, path, body, content_type=content)


@contextmanager
def _raced() -> Iterator[None]:
    """Ignore that an object is gone, or is there already."""
    try:
        yield
    except PlaneApiError as error:
        if error.status not in (404, 409):
            raise


def _gang_of(pod: JsonObject) -> str | None:
    group = pod["spec"].get("schedulingGroup")
    return None if group is None else str(group["podGroupName"])
