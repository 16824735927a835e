"""What is shipped besides the code: image, manifests and chart say what they should, and agree.

That the API server takes the manifests, and that the rights in them suffice, is for the integration
tests to show.
"""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kubesched
from kubesched.cli.options import make_options
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
STATIC_POD = DEPLOY / "kubeadm" / "kube-scheduler.yaml"
BASE = DEPLOY / "second-scheduler"
CHART = DEPLOY / "helm" / "kubesched"
RENDERED = DEPLOY / "helm" / "rendered"

#: The number of the user in the image, and in manifests that let it be.
USER = 65532
#: What a distribution is called if not as its module.
DISTRIBUTIONS = {
    "grpc": "grpcio",
    "opentelemetry": "opentelemetry-proto",
    "yaml": "pyyaml",
    "prometheus_client": "prometheus-client",
}

Manifest = dict[str, Any]


def valid(text: str) -> SchedulerConfiguration:
    """Read a configuration as the scheduler does."""
    return loading.decode(text, gates=FeatureGates.of())


def documents(file: Path) -> list[Manifest]:
    """The objects in a YAML file."""
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


def base() -> list[Manifest]:
    """The objects of the second scheduler, but for what kustomize adds."""
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [each for name in listed for each in documents(BASE / name)]


def rendered(name: str) -> list[Manifest]:
    return documents(RENDERED / f"{name}.yaml")


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [each for each in manifests if each["kind"] == kind]


def pod_spec(manifests: list[Manifest]) -> Manifest:
    """The spec of the only pod, or the only Deployment's."""
    (found,) = (each for each in manifests if each["kind"] in ("Pod", "Deployment"))
    spec: Manifest = found["spec"]
    return spec["template"]["spec"] if found["kind"] == "Deployment" else spec


PODS = {
    "static pod": lambda: pod_spec(documents(STATIC_POD)),
    "second scheduler": lambda: pod_spec(base()),
    "chart": lambda: pod_spec(rendered("default")),
    "chart with everything": lambda: pod_spec(rendered("everything")),
}


@pytest.fixture(params=PODS)
def spec(request: pytest.FixtureRequest) -> Manifest:
    """The spec of each pod that a manifest makes."""
    return PODS[request.param]()


#: What a scheduler imports when a flag, a gate or an object asks for it.
NOT_AT_THE_START = (
    "kubesched.cel",  # expressions
    "kubesched.plugins.device_allocation",  # claims
    "kubesched.plugins.device_search",
    "kubesched.recording.journal",  # --record
    "kubesched.scheduler.extender",  # extenders of the configuration
    "kubesched.scheduler.group_cycle",  # GenericWorkload
    "kubesched.scheduler.group_scheduling",
    "kubesched.tracing.exporting",  # --tracing-config-file
    "kubesched.web",  # --web-ui
    "importlib.metadata",  # plugins that are neither in the tree nor in a file
    "tracemalloc",  # requests
    "html",
)
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u}]
"""


@pytest.fixture
def container(spec: Manifest) -> Manifest:
    (only,) = spec["containers"]
    found: Manifest = only
    return found


class TestDistribution:
    def project(self) -> Manifest:
        found: Manifest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        return found

    def declared(self) -> dict[str, Requirement]:
        wanted = map(Requirement, self.project()["dependencies"])
        return {canonicalize_name(each.name): each for each in wanted}

    def test_declares_whatever_is_imported_and_nothing_else(self) -> None:
        imported = {
            DISTRIBUTIONS.get(module, module)
            for file in (ROOT / "src").rglob("*.py")
            # The plugin of pytest is loaded by pytest alone.
            if file.name != "pytest_plugin.py"
            for module in _imports(file)
            if module not in sys.stdlib_module_names and module != "kubesched"
        }

        tracing = map(Requirement, self.project()["optional-dependencies"]["tracing"])
        assert imported == {*self.declared(), *(each.name for each in tracing)}

    def test_the_scheduler_imports_no_more_than_it_needs_to_start(self) -> None:
        program = (
            "import sys; from kubesched.cli import component, kube_scheduler; "
            "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
        )
        command = [sys.executable, "-c", program]
        asked = subprocess.run(command, capture_output=True, text=True, check=True)

        distributions = {DISTRIBUTIONS.get(name, name) for name in asked.stdout.split()}
        assert distributions & self.declared().keys() == {
            "cryptography",
            "httptools",
            "msgspec",
            "numpy",
            "pyyaml",
            "uvicorn",
        }

    def test_a_start_imports_nothing_that_waits_for_a_feature_or_an_object(
        self, tmp_path: Path
    ) -> None:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG)
        program = (
            "import sys; from kubesched.cli import component, kube_scheduler as command; "
            "flags = command.FLAGS.parse(sys.argv[1:]); gates = command.make_gates(flags); "
            "options = command.complete_options(flags, gates); command._as_built(options); "
            "component.Component(options, lambda: options.config); print(*sys.modules)"
        )
        flags = [f"--kubeconfig={kubeconfig}", "--secure-port=0"]
        command = [sys.executable, "-c", program, *flags]
        asked = subprocess.run(command, capture_output=True, text=True, check=True)

        imported = asked.stdout.split()
        assert "kubesched.plugins.dynamic_resources" in imported
        assert [name for name in imported if name.startswith(NOT_AT_THE_START)] == []

    def test_cel_is_imported_by_the_first_expression(self) -> None:
        program = (
            "import sys; from kubesched.cli import component; from kubesched import cel; "
            "before = 'kubesched.cel.parser' in sys.modules; cel.compile_selector('true'); "
            "print(before, 'kubesched.cel.parser' in sys.modules)"
        )
        command = [sys.executable, "-c", program]
        asked = subprocess.run(command, capture_output=True, text=True, check=True)

        assert asked.stdout == "False True\n"

    def test_has_its_commands_and_those_that_kubectl_looks_for(self) -> None:
        for command, target in self.project()["scripts"].items():
            module, _, function = target.partition(":")
            assert command in {
                "kubesched",
                "kube-scheduler",
                "kubectl-kubesched",
                "kubectl_complete-kubesched",
            }
            assert callable(getattr(importlib.import_module(module), function))

    @pytest.mark.parametrize(
        ("lock", "wanted"),
        [
            ("requirements.txt", lambda: tomllib.loads(_read("pyproject.toml"))["project"]),
            ("build-requirements.txt", lambda: tomllib.loads(_read("pyproject.toml"))),
        ],
        ids=["runtime", "build"],
    )
    def test_the_image_installs_what_is_allowed_by_hash(self, lock: str, wanted: Any) -> None:
        table = wanted()
        texts = table.get("dependencies") or table["build-system"]["requires"]
        pinned = _pinned(DEPLOY / "image" / lock)
        for requirement in map(Requirement, texts):
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])

    def test_the_lock_of_the_build_is_made_from_what_the_project_says(self) -> None:
        table = tomllib.loads(_read("pyproject.toml"))
        stated = _read("deploy/image/build-requirements.in").splitlines()[-1:]
        assert stated == table["build-system"]["requires"]


def _read(path: str) -> str:
    return (ROOT / path).read_text()


def _imports(file: Path) -> Iterator[str]:
    """The top-level names of all modules that a file imports."""
    for each in ast.walk(ast.parse(file.read_text())):
        if isinstance(each, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            yield each.module.partition(".")[0]


def _pinned(file: Path) -> dict[str, str]:
    """Name -> version of a lock file; fails unless each has a hash."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE).replace("\\\n", "")
    found: dict[str, str] = {}
    for line in filter(None, text.splitlines()):
        requirement, *hashes = line.split()
        name, _, version = requirement.partition("==")
        assert version, f"{requirement} is not pinned"
        assert hashes, f"{requirement} has no hash"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)
        found[canonicalize_name(name)] = version
    return found


class TestImage:
    def instructions(self) -> list[tuple[str, str]]:
        """Instruction and argument of each line, continued ones joined."""
        text = re.sub(r"^\s*#.*\n", "", _read("Dockerfile"), flags=re.MULTILINE)
        lines = filter(str.strip, text.replace("\\\n", " ").splitlines())
        return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]

    def said(self, instruction: str) -> list[str]:
        return [rest for word, rest in self.instructions() if word == instruction]

    def test_is_built_on_a_slim_python_of_one_minor_version(self) -> None:
        first, last = self.said("FROM")
        assert re.fullmatch(r"python:3\.\d+-slim AS build", first)
        assert last == first.removesuffix(" AS build")

    def test_the_version_of_python_is_the_one_that_the_lock_is_for(self) -> None:
        version = re.findall(r"\d+\.\d+", self.said("FROM")[0])
        for lock in ("requirements.txt", "build-requirements.txt"):
            said = re.findall(r"--python-version (\S+)", _read(f"deploy/image/{lock}"))
            assert said == version

    def test_runs_as_a_numbered_user_who_is_not_root(self) -> None:
        # The last one counts, and nothing after it may need more.
        assert self.said("USER") == [f"{USER}:{USER}"]
        after = [word for word, _ in self.instructions()]
        assert after[after.index("USER") + 1 :] == ["EXPOSE", "ENTRYPOINT"]

    def test_starts_the_scheduler_without_a_shell(self) -> None:
        assert self.said("ENTRYPOINT") == ['["kube-scheduler"]']
        assert not self.said("CMD")

    def test_downloads_only_what_is_known_by_hash(self) -> None:
        runs = " && ".join(self.said("RUN"))
        assert not re.search(r"\b(curl|wget|apt|apt-get|apk|git)\b", runs)
        assert not self.said("ADD")
        for step in re.split(r"&&", runs):
            words = shlex.split(step)
            if "install" in words or "wheel" in words:
                offline = "--no-index" in words or "--no-build-isolation" in words
                assert "--require-hashes" in words or (offline and "--no-deps" in words)

    def test_needs_to_write_nothing_when_it_runs(self) -> None:
        environment = shlex.split(" ".join(self.said("ENV")))
        assert "PYTHONDONTWRITEBYTECODE=1" in environment
        compiled = [step for step in self.said("RUN") if "compileall" in step]
        assert len(compiled) == 2, "the standard library's bytecode, and ours"
        assert all("--invalidation-mode=unchecked-hash" in step for step in compiled)
        assert not self.said("VOLUME")

    def test_carries_the_labels_of_an_image(self) -> None:
        labels = dict(each.split("=", 1) for each in shlex.split(" ".join(self.said("LABEL"))))
        prefix = "org.opencontainers.image."
        assert labels[prefix + "title"] == "kubesched"
        assert labels[prefix + "licenses"] == "Apache-2.0"
        assert labels[prefix + "base.name"].endswith(self.said("FROM")[-1])
        assert f"VERSION={kubesched.__version__}" in self.said("ARG")

    def test_is_built_from_nothing_that_is_not_named(self) -> None:
        first, *allowed = [
            line for line in _read(".dockerignore").splitlines() if line and line[0] != "#"
        ]
        assert first == "*"
        copied = {
            word.rstrip("/")
            for rest in self.said("COPY")
            if "--from=" not in rest
            for word in rest.split()[:-1]
        }
        assert copied == {each[1:].rstrip("/") for each in allowed if each[0] == "!"}
        assert all((ROOT / each).exists() for each in copied)


class TestPods:
    def test_have_no_more_power_than_they_need(self, spec: Manifest, container: Manifest) -> None:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}

    def test_are_not_root_unless_a_file_of_roots_must_be_read(
        self, spec: Manifest, container: Manifest
    ) -> None:
        pod, own = spec["securityContext"], container["securityContext"]
        if any("hostPath" in each for each in spec["volumes"]):
            assert own["runAsUser"] == 0
        else:
            assert pod["runAsNonRoot"] is True
            assert pod["runAsUser"] == USER
            assert "runAsUser" not in own

    def test_are_probed_over_https(self, container: Manifest) -> None:
        (port,) = container["ports"]
        assert port["containerPort"] == 10259
        for probe, path in (
            ("startupProbe", "/livez"),
            ("livenessProbe", "/livez"),
            ("readinessProbe", "/readyz"),
        ):
            asked = container[probe]["httpGet"]
            assert (asked["path"], asked["port"], asked["scheme"]) == (path, port["name"], "HTTPS")

    def test_can_finish_what_is_under_way(self, spec: Manifest) -> None:
        # Bindings have ten seconds, and after that answers of the HTTPS port have five.
        assert spec.get("terminationGracePeriodSeconds", 30) > 15

    def test_ask_for_room_and_come_first(self, spec: Manifest, container: Manifest) -> None:
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert spec["priorityClassName"].startswith("system-")

    def test_are_given_flags_that_there_are(
        self, container: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arguments = container.get("args") or container["command"][1:]
        configuration = tmp_path / "scheduler.yaml"
        configuration.write_text((BASE / "scheduler.yaml").read_text())
        mounted = "/etc/kubesched/scheduler.yaml"

        options = make_options([each.replace(mounted, str(configuration)) for each in arguments])

        assert options.config.leader_election.leader_elect
        assert options.serving.secure_port == 10259
        assert not [note.message for note in options.notes if "no effect" in note.message]

    def test_run_the_version_that_this_is(self, container: Manifest) -> None:
        image = container["image"]
        assert image in (f"kubesched:{kubesched.__version__}", "kubesched") or "@sha256:" in image

    def test_read_their_configuration_from_a_folder_that_follows_the_config_map(
        self, spec: Manifest, container: Manifest
    ) -> None:
        mounts = {each["name"]: each for each in container["volumeMounts"]}
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert "subPath" not in mounts[volume["name"]]
                assert mounts[volume["name"]]["mountPath"] == "/etc/kubesched"


class TestConfigurations:
    @pytest.mark.parametrize("name", ["default", "everything"])
    def test_of_the_chart_are_valid(self, name: str) -> None:
        maps = of_kind(rendered(name), "ConfigMap")
        (text,) = (
            each["data"]["scheduler.yaml"] for each in maps if "scheduler.yaml" in each["data"]
        )
        config = valid(text)
        (role,) = of_kind(rendered(name), "Role")
        assert [config.leader_election.resource_name] == role["rules"][0]["resourceNames"]
        assert config.leader_election.resource_namespace == role["metadata"]["namespace"]

    def test_of_the_second_scheduler_has_a_lease_of_its_own(self) -> None:
        config = valid((BASE / "scheduler.yaml").read_text())
        (role,) = of_kind(base(), "Role")
        (rule,) = role["rules"]
        assert rule["resourceNames"] == [config.leader_election.resource_name] != ["kube-scheduler"]
        assert role["metadata"]["namespace"] == config.leader_election.resource_namespace


class TestRights:
    def granted(self, manifests: list[Manifest]) -> set[tuple[str, str, str]]:
        """What is bound: kind of binding, kind of role, and the role without its release."""
        return {
            (each["kind"], each["roleRef"]["kind"], each["roleRef"]["name"].split(":", 1)[-1])
            for kind in ("RoleBinding", "ClusterRoleBinding")
            for each in of_kind(manifests, kind)
        }

    @pytest.mark.parametrize("manifests", [base, lambda: rendered("default")])
    def test_are_those_of_kube_scheduler_and_a_lease(self, manifests: Any) -> None:
        assert self.granted(manifests()) == {
            ("ClusterRoleBinding", "ClusterRole", "kube-scheduler"),
            ("ClusterRoleBinding", "ClusterRole", "volume-scheduler"),
            ("RoleBinding", "Role", "extension-apiserver-authentication-reader"),
            ("RoleBinding", "Role", "leader-election"),
        }
        assert not of_kind(manifests(), "ClusterRole")
        (role,) = of_kind(manifests(), "Role")
        (rule,) = role["rules"]
        assert (rule["resources"], rule["verbs"]) == (["leases"], ["get", "update"])

    @pytest.mark.parametrize(
        "manifests", [base, lambda: rendered("default"), lambda: rendered("everything")]
    )
    def test_go_to_the_account_that_the_pods_run_with(self, manifests: Any) -> None:
        found = manifests()
        (account,) = of_kind(found, "ServiceAccount")
        assert pod_spec(found)["serviceAccountName"] == account["metadata"]["name"]
        bindings = of_kind(found, "RoleBinding") + of_kind(found, "ClusterRoleBinding")
        for binding in bindings:
            (subject,) = binding["subjects"]
            assert subject["kind"] == "ServiceAccount"
            assert subject["name"] == account["metadata"]["name"]


class TestChart:
    @pytest.mark.parametrize("name", ["default", "everything"])
    def test_renderings_are_of_the_chart_as_it_is(self, name: str) -> None:
        render = runpy.run_path(str(DEPLOY / "helm" / "render.py"))
        first_line = (RENDERED / f"{name}.yaml").read_text().split("\n", 1)[0]
        assert first_line == render["digest"](name), "run deploy/helm/render.py"

    def test_is_of_the_version_that_this_is(self) -> None:
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        assert chart["version"] == chart["appVersion"] == kubesched.__version__

    def test_every_value_is_known_to_the_schema(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        schema = yaml.safe_load((CHART / "values.schema.json").read_text())
        assert values.keys() | {"global"} == schema["properties"].keys()
        for name, value in values.items():
            known = schema["properties"][name]
            if known.get("additionalProperties") is False:
                assert value.keys() == known["properties"].keys(), name

    def test_everything_can_be_switched_on(self) -> None:
        kinds = {each["kind"] for each in rendered("everything")}
        assert kinds - {each["kind"] for each in rendered("default")} == {
            "NetworkPolicy",
            "PrometheusRule",
            "ServiceMonitor",
        }
        assert len(of_kind(rendered("everything"), "ConfigMap")) == 2, "one is the dashboard"
