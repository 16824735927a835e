"""The same work for either scheduler, in steps that each wait for the one before.

    nodes ──> scheduled · gated · refused · woken by a label · preempting · binding refused

What can be counted afterwards is the same each time, but for what depends on time alone.
"""

from __future__ import annotations

from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject, PlaneApiError
from .scheduler_process import (
    condition_of,
    delete_pod,
    events_of,
    node,
    patch_node,
    pod,
    pods_path,
    wait_until_bound,
    wait_until_refused,
)

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
HIGH = "test-metrics-high"
FORBIDDING = "test-metrics-no-binding"
UNBINDABLE = "unbindable"

NODES = ("n1", "n2", "n3")


class Work:
    """What is done in one namespace; `with` leaves nothing behind that is not in it."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace

    def prepare(self) -> None:
        """Create what is there before the scheduler starts."""
        self._plane.request("POST", PRIORITY_CLASSES, {"metadata": {"name": HIGH}, "value": 1000})
        self._forbid_a_binding()

    def clean_up(self) -> None:
        """Delete what is not in the namespace."""
        for path in (
            f"{PRIORITY_CLASSES}/{HIGH}",
            f"{BINDINGS}/{FORBIDDING}",
            f"{POLICIES}/{FORBIDDING}",
        ):
            self._plane.request("DELETE", path)
        self._plane.purge_cluster()

    def do(self) -> None:
        """Do everything, one after the other."""
        plane, namespace = self._plane, self._namespace
        plane.create_many("/api/v1/nodes", [node(name) for name in NODES], concurrency=1)
        for number in range(6):
            self._create(
                pod(f"plain-{number}", requests={"cpu": "1"}, terminationGracePeriodSeconds=0)
            )
            wait_until_bound(plane, namespace, f"plain-{number}")
        self._wait_at_gates()
        self._wait_for_a_label()
        self._preempt()
        self._fail_to_bind()

    def _create(self, what: JsonObject) -> None:
        self._plane.request("POST", pods_path(self._namespace), what)

    def _wait_at_gates(self) -> None:
        for name in ("gated", "let-go"):
            self._create(pod(name, schedulingGates=[{"name": "example.com/wait"}]))
        self._plane.request(
            "PATCH",
            pods_path(self._namespace, "let-go"),
            [{"op": "remove", "path": "/spec/schedulingGates"}],
            content_type="application/json-patch+json",
        )
        wait_until_bound(self._plane, self._namespace, "let-go")

    def _wait_for_a_label(self) -> None:
        for name, label in (("woken", "later"), ("waiting", "never")):
            self._create(pod(name, nodeSelector={"test/label": label}))
            wait_until_refused(self._plane, self._namespace, name)
        patch_node(self._plane, "n1", {"metadata": {"labels": {"test/label": "later"}}})
        wait_until_bound(self._plane, self._namespace, "woken")

    def _preempt(self) -> None:
        """Half of what each node has is taken; a more important pod lacks as much as one pod has.

        Of several victims, the first one to go wakes the preemptor in kube-scheduler and not in
        ours; and what it does then in kube-scheduler is a race with the deletion of the others.
        """
        self._create(pod("important", requests={"cpu": "3"}, priorityClassName=HIGH))
        wait_until_bound(self._plane, self._namespace, "important")

    def _fail_to_bind(self) -> None:
        self._create(pod(UNBINDABLE))
        until(lambda: condition_of(self._plane, self._namespace, UNBINDABLE))
        until(lambda: events_of(self._plane, self._namespace, UNBINDABLE))
        delete_pod(self._plane, self._namespace, UNBINDABLE)

    def _forbid_a_binding(self) -> None:
        """Let the API server refuse to bind one pod, and wait until it does."""
        plane = self._plane
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods/binding"],
        }
        plane.request(
            "POST",
            POLICIES,
            {
                "metadata": {"name": FORBIDDING},
                "spec": {
                    "matchConstraints": {"resourceRules": [rule]},
                    "validations": [
                        {"expression": f"request.name != '{UNBINDABLE}'", "message": "not this one"}
                    ],
                },
            },
        )
        plane.request(
            "POST",
            BINDINGS,
            {
                "metadata": {"name": FORBIDDING},
                "spec": {"policyName": FORBIDDING, "validationActions": ["Deny"]},
            },
        )
        until(self._is_forbidden)

    def _is_forbidden(self) -> bool:
        path = f"{pods_path(self._namespace, UNBINDABLE)}/binding?dryRun=All"
        binding = {
            "metadata": {"name": UNBINDABLE},
            "target": {"kind": "Node", "name": NODES[0]},
        }
        try:
            self._plane.request("POST", path, binding)
        except PlaneApiError as refused:
            return "not this one" in str(refused)
        return False
