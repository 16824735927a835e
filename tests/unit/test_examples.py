"""The examples: their own tests pass, run as their readers would run them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from examples.fleet import TAKEN_AT, fleet
from examples.yardstick import Arrays

import kubesched
from kubesched import kinds
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.plugin_loading import open_registry
from kubesched.plugins.in_tree import IN_TREE
from kubesched.simulate.placing import SequentialPlacer
from kubesched.snapshot import files
from kubesched.snapshot.world import World
from kubesched.testing import plugin_checks

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/plugin.py"))


@pytest.fixture(autouse=True)
def kinds_of_the_tree() -> Iterator[None]:
    """Take kinds out of the table again that examples watch."""
    yield
    for kind in [each for each in kinds.KINDS.values() if each.is_of_plugins]:
        kinds.remove(kind.name)


def test_there_are_some_of_each_form() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_a_plugin_with_a_docstring(example: Path) -> None:
    registry = open_registry(IN_TREE, [str(example / "plugin.py")])

    (name,) = set(registry) - set(IN_TREE)
    assert registry.points_of(name)
    assert registry[name].__doc__


@pytest.mark.parametrize("check", [check for _, check in plugin_checks(Arrays)])
def test_the_yardstick_keeps_its_promises(check: Callable[[], None]) -> None:
    check()


def test_their_tests_pass() -> None:
    """In a pytest of their own, so that nothing of ours helps them."""
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-c", "/dev/null", "--rootdir", ".", "-p", "kubesched.testing.pytest_plugin"),
            "examples",
        ],
        cwd=ROOT,
        env={
            "PYTHONPATH": str(Path(kubesched.__file__).parents[1]),
            "PATH": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for example in EXAMPLES:
        assert (example / "test_plugin.py").exists()


# --- the cluster of the documents -----------------------------------------------------------------


@pytest.fixture(scope="module")
def fleet_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "fleet.gz"
    files.write(fleet(), path, taken_at=TAKEN_AT)
    return path


def test_the_fleet_has_what_its_documents_say(fleet_file: Path) -> None:
    snapshot = files.read(fleet_file, strict=True)
    labels = [each.metadata.labels or {} for each in snapshot.nodes]

    assert len(labels) == 50
    assert {each["topology.kubernetes.io/zone"][-1] for each in labels} == {"a", "b", "c"}
    assert len({each["node.kubernetes.io/pool"] for each in labels}) == 4
    assert any(each["kubernetes.io/arch"] == "arm64" for each in labels)
    assert len(snapshot.objects["PodDisruptionBudget"]) >= 5
    allocated = [each for each in snapshot.objects["ResourceClaim"] if each.status.allocation]
    assert len(allocated) == 17, "GPUs of 14 pods that serve and of 3 that train"
    assert all(each.spec.volume_name for each in snapshot.objects["PersistentVolumeClaim"])


def test_pods_of_the_fleet_wait_each_for_another_reason(fleet_file: Path) -> None:
    gates = FeatureGates.of({})
    config = SchedulerConfiguration.default(gates)
    world = World.of_snapshot(files.read(fleet_file), config, gates)
    placer = SequentialPlacer(world)

    messages = {name: placer.place(pod).message for (_, name), pod in world.pending.items()}

    assert world.notes == []
    expected = {
        "etl": "23 Insufficient cpu",
        "train-large": "cannot allocate all claims",
        "canary": "didn't match Pod's node affinity/selector",
        "warehouse": 'persistentvolumeclaim "warehouse-data" not found',
        "quorum": "didn't match pod anti-affinity rules",
        "migration": "waiting for scheduling gates: [example.com/backup-taken]",
    }
    found = {name.partition("-v")[0]: message for name, message in messages.items()}
    assert found.keys() == expected.keys()
    assert {name: part for name, part in expected.items() if part not in found[name]} == {}, found


def test_the_fleet_is_the_same_each_time(fleet_file: Path, tmp_path: Path) -> None:
    files.write(fleet(), tmp_path / "again", taken_at=TAKEN_AT)

    first, second = (
        gzip.decompress(path.read_bytes()) for path in (fleet_file, tmp_path / "again")
    )
    assert first == second
