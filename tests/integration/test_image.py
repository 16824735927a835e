"""The image that the Dockerfile describes, built and run without a container engine.

    Dockerfile ──tools/image──> layers ──> a container as deploy/second-scheduler wants it
                                             └──> schedules on a real API server

The base is a stand-in made of Debian's packages; everything above it is what the Dockerfile says.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tools.image import container
from tools.image.build import BuildError, Image, build
from tools.release import sbom

import kubesched
from kubesched.bench.processes import LOOPBACK, Process, free_ports
from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject
from .scheduler_process import SchedulerProcess, node, pod, pods_path, wait_until_bound
from .serving_callers import ask, connect

pytestmark = pytest.mark.slow

BASE = Path(__file__).resolve().parents[2] / "deploy" / "second-scheduler"
ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
USER = 65532


@pytest.fixture(scope="module")
def image() -> Image:
    """The image of this checkout."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("layers are mounted, which needs root")
    try:
        return build()
    except BuildError as error:
        pytest.fail(f"no image: {error}", pytrace=False)


def output_of(image: Image, *arguments: str, log: Path) -> str:
    """Run a container to its end; return what it printed."""
    with log.open("wb") as sink:
        started = container.start(image, *arguments, output=sink)
    assert started.wait(30) == 0, log.read_text()
    return log.read_text()


class TestImage:
    def test_says_its_version(self, image: Image, tmp_path: Path) -> None:
        said = output_of(image, "--version", log=tmp_path / "log")

        assert said == f"Kubernetes {kubesched.KUBERNETES_VERSION}\n"

    def test_holds_no_installer_and_no_build_system(self, image: Image, tmp_path: Path) -> None:
        asked = (
            "import importlib.util as u; print([n for n in ('pip', 'hatchling') if u.find_spec(n)])"
        )
        python = Image(**{**vars(image), "entry_point": ["python", "-c"]})
        system = Image(**{**vars(image), "entry_point": ["/usr/local/bin/python", "-c"]})

        assert output_of(python, asked, log=tmp_path / "own") == "[]\n"
        assert output_of(system, asked, log=tmp_path / "system") == "[]\n"

    def test_holds_the_packages_that_the_lock_and_so_the_bill_of_materials_name(
        self, image: Image, tmp_path: Path
    ) -> None:
        asked = (
            "from importlib.metadata import distributions as d;"
            "print(*(f'{x.name}=={x.version}' for x in d()))"
        )
        python = Image(**{**vars(image), "entry_point": ["/opt/kubesched/bin/python", "-c"]})

        found = output_of(python, asked, log=tmp_path / "log").lower().replace("_", "-").split()

        lock = re.findall(r"^\S+==\S+", sbom.LOCK.read_text(), re.MULTILINE)
        assert sorted(found) == sorted([*lock, f"kubesched=={kubesched.__version__}"])

    def test_carries_its_labels(self, image: Image) -> None:
        assert image.labels["org.opencontainers.image.version"] == kubesched.__version__


# --- the second scheduler of deploy/ ------------------------------------------------------------


@pytest.fixture
def objects(control_plane: ControlPlane) -> Iterator[list[JsonObject]]:
    """The second scheduler's objects; those that give it rights and settings are applied."""
    text = control_plane.kubectl("kustomize", str(BASE))
    found: list[JsonObject] = [each for each in yaml.safe_load_all(text) if each]
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRoleBinding", "ConfigMap")
    manifest = yaml.safe_dump_all(each for each in found if each["kind"] in kinds)
    control_plane.kubectl("apply", "--server-side", "--filename=-", input=manifest)
    yield found
    control_plane.kubectl("delete", "--filename=-", input=manifest)


def only(objects: list[JsonObject], kind: str) -> JsonObject:
    """The only object of a kind."""
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def mounted(folder: Path, **files: str) -> Path:
    """A volume with these files, readable as the kubelet would make them; `_` is a dot."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


@contextlib.contextmanager
def running(
    image: Image, plane: ControlPlane, objects: list[JsonObject], folder: Path, port: int
) -> Iterator[SchedulerProcess]:
    """What the kubelet would run for a pod of the Deployment; yields when it schedules."""
    path = "/api/v1/namespaces/kube-system/serviceaccounts/kubesched/token"
    token = plane.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    authority = (plane.folder / "certificates" / "apiserver.crt").read_text()
    volumes = {
        ACCOUNT_FOLDER: mounted(
            folder / "account", token=token, ca_crt=authority, namespace="kube-system"
        ),
        "/etc/kubesched": mounted(
            folder / "config",
            scheduler_yaml=only(objects, "ConfigMap")["data"]["scheduler.yaml"],
        ),
    }
    (wanted,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    log = folder / "log"
    with log.open("wb") as sink:
        started = container.start(
            image,
            *wanted["args"],
            # The network is the machine's: others may use the port of the manifest.
            *(f"--bind-address={LOOPBACK}", f"--secure-port={port}"),
            volumes=volumes,
            output=sink,
            KUBERNETES_SERVICE_HOST=LOOPBACK,
            KUBERNETES_SERVICE_PORT=str(plane.port),
        )
    scheduler = SchedulerProcess(Process("container", started, log))
    try:
        scheduler.wait_until_scheduling()
        yield scheduler
    except BaseException as error:
        error.add_note(scheduler.describe())
        raise
    finally:
        started.kill()
        started.wait()


def status_of(process: int) -> dict[str, str]:
    """/proc/<process>/status."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def writable(process: int) -> set[str]:
    """Where a process could write files: its mounts that are not read-only."""
    lines = Path(f"/proc/{process}/mounts").read_text().splitlines()
    mounts = (line.split() for line in lines)
    return {where for _, where, _, options, *_ in mounts if "ro" not in options.split(",")}


class TestContainer:
    @pytest.mark.usefixtures("clean_pods")
    def test_schedules_without_privileges_and_without_a_file_to_write(
        self,
        image: Image,
        control_plane: ControlPlane,
        namespace: str,
        objects: list[JsonObject],
        tmp_path: Path,
    ) -> None:
        plane = control_plane
        (port,) = free_ports(1)
        plane.request("POST", "/api/v1/nodes", node("n1"))
        plane.request("POST", pods_path(namespace), pod("p", schedulerName="kubesched"))

        with running(image, plane, objects, tmp_path, port) as scheduler:
            assert wait_until_bound(plane, namespace, "p") == {"p": "n1"}
            with contextlib.closing(connect(port)) as connection:
                until(lambda: ask(connection, "/readyz", "GET", {}).code == 200)
            process = container.first_process(scheduler._popen)
            assert process is not None

            status = status_of(process)
            assert status["Uid"].split() == status["Gid"].split() == [str(USER)] * 4
            assert not status["Groups"].split()
            capabilities = {status[f"Cap{each}"] for each in ("Inh", "Prm", "Eff", "Bnd", "Amb")}
            assert {int(each, 16) for each in capabilities} == {0}
            assert status["NoNewPrivs"] == "1"
            assert status["NSpid"].split()[-1] == "1"
            devices = {f"/dev/{each}" for each in ("full", "null", "random", "urandom", "zero")}
            assert writable(process) == {"/proc", *devices}

            os.kill(process, signal.SIGTERM)
            assert scheduler.wait_for_end(seconds=15) == 0
        assert not scheduler.log_lines("EF")
        assert "Read-only file system" not in scheduler.log()
        assert "Traceback" not in scheduler.log()
