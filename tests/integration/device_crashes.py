"""Schedulers that are killed again and again between Reserve and the last write of PreBind.

    python -m tests.integration.device_crashes --crashes 200

    pods with claims ──> a scheduler that dies at one of its writes ──> are devices given twice?
         ^───────────── some pods go, their claims are released <──────────┘
    at the end a scheduler that lives: each pod has a node, and each claim the devices for it

Claims are of the pod alone, of two pods, for shares of a device, and for extended resources.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from kubesched.bench import assets
from kubesched.bench.processes import spawn
from tests.support.waiting import until

from .claim_controller import DEVICES, all_claims, claims_path, make_claims, release_claims
from .control_plane import ControlPlane
from .dying_scheduler import MOMENTS
from .scheduler_process import (
    all_pods,
    configuration,
    delete_pod,
    environment,
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
)

Json = dict[str, Any]

NODES = 4
DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"
#: So many devices has a node, and one more that is shared.
DEVICES_PER_NODE = 6
SHARES = 6
#: So many pods stay: they leave room for what a crash has left behind.
KEPT = 6
#: The most writes until a scheduler dies; the pods of one round take more.
MOST_WRITES = 6


class Crashes:
    """One run."""

    def __init__(self, plane: ControlPlane, namespace: str, seed: int) -> None:
        self._plane = plane
        self._namespace = namespace
        self._rng = random.Random(seed)
        self._number = 0
        #: how often a scheduler died at which moment, and what it left
        self.outcomes: Counter[str] = Counter()

    def prepare(self) -> None:
        """Create nodes with devices, and what claims are made of."""
        plane = self._plane
        for number in range(NODES):
            plane.request("POST", "/api/v1/nodes", node(f"n{number}"))
            plane.request("POST", f"{DEVICES}/resourceslices", _slice(f"n{number}"))
        for name, is_shared in (("gpu", False), ("share", True)):
            expression = f"device.allowMultipleAllocations == {json.dumps(is_shared)}"
            spec: Json = {"selectors": [{"cel": {"expression": expression}}]}
            if name == "gpu":
                spec["extendedResourceName"] = RESOURCE
            body = {"metadata": {"name": name}, "spec": spec}
            plane.request("POST", f"{DEVICES}/deviceclasses", body)
            path = f"{DEVICES}/namespaces/{self._namespace}/resourceclaimtemplates"
            body = {"metadata": {"name": name}, "spec": {"spec": _claim(name)}}
            plane.request("POST", path, body)

    def run(self, crashes: int) -> None:
        """Let schedulers die so many times, and then one live."""
        for _ in range(crashes):
            self._create()
            self._crash()
            self._check_devices()
            self._let_go(KEPT)
        self._create()
        with run_scheduler(self._plane):
            wait_until_bound(self._plane, self._namespace, seconds=60)
            until(self._are_claims_settled)
        self._check_devices()
        self._check_claims()

    def _create(self) -> None:
        """Create pods of each kind."""
        plane, namespace = self._plane, self._namespace
        self._number += 1
        own = [{"name": "own", "resourceClaimTemplateName": "gpu"}]
        share = [{"name": "share", "resourceClaimTemplateName": "share"}]
        shared = f"shared-{self._number}"
        body = {"metadata": {"name": shared}, "spec": _claim("gpu")}
        plane.request("POST", claims_path(namespace), body)
        both = [{"name": "both", "resourceClaimName": shared}]
        made = [
            pod(f"own-{self._number}", resourceClaims=own),
            pod(f"one-{self._number}", resourceClaims=[*both, *share]),
            pod(f"two-{self._number}", resourceClaims=both),
            pod(f"extended-{self._number}", requests={RESOURCE: "1"}),
        ]
        self._rng.shuffle(made)
        for each in made:
            make_claims(plane, plane.request("POST", pods_path(namespace), each))

    def _crash(self) -> None:
        """Run a scheduler until it dies."""
        write, moment = self._rng.randint(1, MOST_WRITES), self._rng.choice(MOMENTS)
        file = self._plane.folder / "dying.json"
        file.write_text(json.dumps(configuration(self._plane.scheduler_kubeconfig)))
        process = spawn(
            "dying",
            [
                *(sys.executable, "-m", "tests.integration.dying_scheduler", str(write), moment),
                *(f"--config={file}", "--secure-port=0"),
            ],
            log=self._plane.folder / "dying.log",
            cwd=Path(__file__).resolve().parents[2],
            environment=environment(),
        )
        try:
            code = process.popen.wait(60)
        except subprocess.TimeoutExpired as still_there:
            still_there.add_note(process.describe())
            raise
        finally:
            process.end()
        assert code == -signal.SIGKILL, process.describe()
        self.outcomes[f"{moment} write {write}"] += 1

    def _let_go(self, kept: int) -> None:
        """Delete pods, the bound and those that wait alike, and what the dead schedulers left."""
        pods = all_pods(self._plane, self._namespace)
        gone = self._rng.sample(pods, max(0, len(pods) - kept))
        for each in gone:
            delete_pod(self._plane, self._namespace, each["metadata"]["name"])
        uids = {each["metadata"]["uid"] for each in gone}
        left = {uid for uids in self._users().values() for uid in uids} - self._pods().keys()
        self.outcomes["pods gone that had devices"] += len(left)
        release_claims(self._plane, self._namespace, uids | left)
        for claim in all_claims(self._plane, self._namespace):
            name = claim["metadata"]["name"]
            if name.startswith("shared-") and not claim.get("status", {}).get("allocation"):
                is_wanted = any(name in _claims_of(each) for each in self._pods().values())
                if not is_wanted:
                    self._plane.purge_object(claims_path(self._namespace, name))

    # --- what must hold ---------------------------------------------------------------------

    def _pods(self) -> dict[str, Json]:
        return {each["metadata"]["uid"]: each for each in all_pods(self._plane, self._namespace)}

    def _users(self) -> dict[str, list[str]]:
        return {
            claim["metadata"]["name"]: [
                each["uid"] for each in claim.get("status", {}).get("reservedFor", ())
            ]
            for claim in all_claims(self._plane, self._namespace)
        }

    def _check_devices(self) -> None:
        """No device is given to two claims, and no more of it is shared than there is."""
        taken: Counter[tuple[str, str]] = Counter()
        shares: dict[tuple[str, str], int] = defaultdict(int)
        for claim in all_claims(self._plane, self._namespace):
            allocation = claim.get("status", {}).get("allocation") or {"devices": {"results": []}}
            for each in allocation["devices"].get("results", ()):
                key = (each["pool"], each["device"])
                if "shareID" in each:
                    shares[key] += int(each["consumedCapacity"]["parts"])
                else:
                    taken[key] += 1
        assert [key for key, times in taken.items() if times > 1] == []
        assert [key for key, total in shares.items() if total > SHARES] == []
        self.outcomes["devices given"] += len(taken) + len(shares)

    def _are_claims_settled(self) -> bool:
        """Whether no claim for extended resources is left but those that pods name."""
        return self._extended() == {
            each["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
            for each in self._pods().values()
            if each["status"].get("extendedResourceClaimStatus")
        }

    def _extended(self) -> set[str]:
        return {name for name in self._users() if "-extended-resources-" in name}

    def _check_claims(self) -> None:
        """Each claim is reserved for the pods that use it, all on the node of its devices."""
        pods, users = self._pods(), self._users()
        claims = {
            each["metadata"]["name"]: each for each in all_claims(self._plane, self._namespace)
        }
        for name, uids in users.items():
            using = {uid for uid, each in pods.items() if name in _claims_of(each)}
            assert set(uids) == using, f"{name} is reserved for {uids}, used by {using}"
            for uid in using:
                result = claims[name]["status"]["allocation"]["devices"]["results"][0]
                assert result["pool"] == pods[uid]["spec"]["nodeName"]
        assert len(self._extended()) == sum(
            "extended-" in p["metadata"]["name"] for p in pods.values()
        )


def _claims_of(pod: Json) -> set[str]:
    """The claims that a pod uses."""
    named = {each.get("resourceClaimName") for each in pod["spec"].get("resourceClaims", ())}
    own = {each["resourceClaimName"] for each in pod["status"].get("resourceClaimStatuses", ())}
    extended = pod["status"].get("extendedResourceClaimStatus", {}).get("resourceClaimName")
    return (named | own | {extended}) - {None}


def _slice(node_name: str) -> Json:
    devices: list[Json] = [{"name": f"gpu-{number}"} for number in range(DEVICES_PER_NODE)]
    policy = {"default": "2", "validValues": ["1", "2"]}
    parts = {"parts": {"value": str(SHARES), "requestPolicy": policy}}
    devices.append({"name": "share", "allowMultipleAllocations": True, "capacity": parts})
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": devices}
    return {"metadata": {"name": node_name}, "spec": spec}


def _claim(class_name: str) -> Json:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": class_name}}]}}


def crash(plane: ControlPlane, *, crashes: int, seed: int) -> Counter[str]:
    """Let schedulers die on a cluster that has no objects; return what came of it."""
    namespace = f"crashes-{seed}"
    plane.create_namespace(namespace)
    run = Crashes(plane, namespace, seed)
    try:
        run.prepare()
        run.run(crashes)
    finally:
        plane.delete_namespace(namespace)
    return run.outcomes


def main() -> None:
    """Let as many die as are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--crashes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261118)
    flags = parser.parse_args()
    with ControlPlane(assets.folder()) as plane:
        outcomes = crash(plane, crashes=flags.crashes, seed=flags.seed)
    print(", ".join(f"{what}: {count}" for what, count in sorted(outcomes.items())))


if __name__ == "__main__":
    main()
