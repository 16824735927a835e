"""Plugins of others in our scheduler's process, on a real API server."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
import yaml

from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject, PlaneApiError
from .scheduler_process import (
    condition_of,
    configuration,
    events_of,
    node,
    node_of,
    pod,
    pods_path,
    profile,
    run_scheduler,
    run_to_its_end,
    wait_until_bound,
    wait_until_refused,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHEAPEST = EXAMPLES / "cheapest_node" / "plugin.py"
POOL_GRANTS = EXAMPLES / "pool_grants" / "plugin.py"


def with_plugin(
    plane: ControlPlane, name: str, *, weight: int = 1, args: JsonObject | None = None
) -> JsonObject:
    plugins = {"multiPoint": {"enabled": [{"name": name, "weight": weight}]}}
    chosen = profile(plugins=plugins, args={} if args is None else {name: args})
    return configuration(plane.scheduler_kubeconfig, chosen, podInitialBackoffSeconds=1)


def written(folder: Path, text: str) -> Path:
    path = folder / "own_plugin.py"
    path.write_text(textwrap.dedent(text))
    return path


def create(plane: ControlPlane, namespace: str, *objects: JsonObject) -> None:
    for each in objects:
        path = "/api/v1/nodes" if each["kind"] == "Node" else pods_path(namespace)
        plane.request("POST", path, each)


def test_a_plugin_of_a_file_decides_where_pods_go(
    control_plane: ControlPlane, namespace: str
) -> None:
    create(
        control_plane,
        namespace,
        *(node(f"n{number}", labels={"cost": str(number)}) for number in (3, 1, 2)),
    )
    config = with_plugin(control_plane, "CheapestNode", weight=50, args={"priceLabel": "cost"})

    with run_scheduler(control_plane, config, f"--plugin={CHEAPEST}"):
        create(
            control_plane,
            namespace,
            *(pod(f"p{number}", requests={"cpu": "1500m"}) for number in range(4)),
        )
        placed = wait_until_bound(control_plane, namespace, *(f"p{n}" for n in range(4)))

    # Two fit on the cheapest, and the next two on the second cheapest.
    assert sorted(placed.values()) == ["n1", "n1", "n2", "n2"]


def test_a_failure_costs_the_pods_it_happens_to_and_nobody_else(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    file = written(
        tmp_path,
        """\
        from kubesched.framework.node_by_node import NodeFilter

        class Picky(NodeFilter):
            def filter_node(self, pod, node):
                if pod.labels["team"] == "red":
                    return "node(s) did not like red"
                return None
        """,
    )
    create(control_plane, namespace, node("n1"))

    with run_scheduler(control_plane, with_plugin(control_plane, "Picky"), f"--plugin={file}"):
        create(control_plane, namespace, pod("unlucky"))
        said = f"plugin Picky failed at {file}:5: KeyError: 'team'"
        until(lambda: said in str(condition_of(control_plane, namespace, "unlucky")))
        create(
            control_plane,
            namespace,
            pod("fine", labels={"team": "blue"}),
            pod("red", labels={"team": "red"}),
        )
        wait_until_bound(control_plane, namespace, "fine")
        message = wait_until_refused(control_plane, namespace, "red")
        until(lambda: said in str(events_of(control_plane, namespace, "unlucky")))

    assert message.startswith("0/1 nodes are available: 1 node(s) did not like red.")
    assert node_of(control_plane, namespace, "unlucky") == ""
    condition = condition_of(control_plane, namespace, "unlucky")
    assert condition is not None
    assert condition["reason"] == "SchedulerError"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"price": "x"}, "unknown field args.price; known are priceLabel, unknownPrice"),
        ({"unknownPrice": "much"}, "args.unknownPrice: Expected float, got str"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_anything_is_started(
    tmp_path: Path, args: JsonObject, said: str
) -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "CheapestNode"}]}}
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            configuration(tmp_path / "none", profile(plugins=plugins, args={"CheapestNode": args}))
        )
    )

    done = run_to_its_end(f"--config={config}", f"--plugin={CHEAPEST}")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f'Error: profile "default-scheduler": plugin "CheapestNode": {said}'
    )


def test_a_plugin_that_nobody_brings_is_unknown(tmp_path: Path) -> None:
    plugins = {"score": {"enabled": [{"name": "CheapestNode"}]}}
    config = tmp_path / "config.json"
    config.write_text(json.dumps(configuration(tmp_path / "none", profile(plugins=plugins))))

    done = run_to_its_end(f"--config={config}")

    assert done.returncode == 1
    assert 'ScorePlugin "CheapestNode" does not exist' in done.stderr


def test_a_file_that_is_broken_is_refused_by_its_line(tmp_path: Path) -> None:
    file = written(tmp_path, "import nothing_of_that_name\n")

    done = run_to_its_end(f"--plugin={file}", "--write-config-to=/dev/null")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"Error: plugin file {file}: {file}:1: "
        "ModuleNotFoundError: No module named 'nothing_of_that_name'"
    )
    assert "Traceback" not in done.stderr


def test_a_plugin_that_fails_or_is_slow_is_told_of_by_events_on_the_pod(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    file = written(
        tmp_path,
        """\
        import time
        from kubesched.framework.node_by_node import CachedNodeFilter

        class Sluggish(CachedNodeFilter):
            budget_s = 0.05

            def filter_node(self, pod, node):
                time.sleep(0.03)
                if "broken" in node.labels:
                    raise ValueError("broken")
                return "node(s) were not to my taste"
        """,
    )
    create(control_plane, namespace, node("n1"), node("n2"))

    with run_scheduler(control_plane, with_plugin(control_plane, "Sluggish"), f"--plugin={file}"):
        create(control_plane, namespace, pod("slow"))
        until(lambda: "PluginSlow" in str(events_of(control_plane, namespace, "slow")))
        create(control_plane, namespace, node("n3", labels={"broken": "yes"}))
        create(control_plane, namespace, pod("failed", requests={"cpu": "1"}))
        until(lambda: "PluginFailed" in str(events_of(control_plane, namespace)))

    told = {each["reason"]: each for each in events_of(control_plane, namespace)}
    assert told["PluginSlow"]["type"] == told["PluginFailed"]["type"] == "Warning"
    # Neither node alone takes longer than the budget.
    assert "its budget is 50 ms" in told["PluginSlow"]["note"]
    assert told["PluginFailed"]["note"].startswith(f"plugin Sluggish failed at {file}:10: ")


def test_a_plugin_reads_objects_of_a_kind_of_its_own(
    control_plane: ControlPlane, namespace: str
) -> None:
    """With the rights that come with the kind, and woken by what happens to its objects."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    roles = "/apis/rbac.authorization.k8s.io/v1"
    grants = "/apis/example.com/v1/poolgrants"
    kind, role, binding = yaml.safe_load_all((POOL_GRANTS.parent / "crd.yaml").read_text())
    grant = {
        "apiVersion": "example.com/v1",
        "kind": "PoolGrant",
        "metadata": {"name": "training"},
        "spec": {"pool": "gpu", "namespaces": [namespace]},
    }
    control_plane.request("POST", definitions, kind)
    control_plane.request("POST", f"{roles}/clusterroles", role)
    control_plane.request("POST", f"{roles}/clusterrolebindings", binding)
    until(lambda: _is_served(control_plane, grants))
    try:
        create(control_plane, namespace, node("n1", labels={"example.com/pool": "gpu"}))
        config = with_plugin(control_plane, "PoolGrants")
        with run_scheduler(control_plane, config, f"--plugin={POOL_GRANTS}"):
            create(control_plane, namespace, pod("p1"))
            refused = wait_until_refused(control_plane, namespace, "p1")
            assert f"node(s) of pool gpu were not granted to {namespace}" in refused

            control_plane.request("POST", grants, grant)

            assert wait_until_bound(control_plane, namespace, "p1") == {"p1": "n1"}
    finally:
        control_plane.request("DELETE", f"{definitions}/poolgrants.example.com")
        control_plane.request("DELETE", f"{roles}/clusterroles/poolgrants-reader")
        control_plane.request("DELETE", f"{roles}/clusterrolebindings/kube-scheduler-poolgrants")


def _is_served(plane: ControlPlane, path: str) -> bool:
    try:
        plane.request("GET", path)
    except PlaneApiError as refused:
        return refused.status != 404
    return True
