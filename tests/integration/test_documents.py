"""Every document, followed as its reader would: files are saved and commands run, as printed.

    document ──> files, commands in order ──> Terminal ──> the reader's cluster: a real API server
                 manifests ──> server-side dry run
                 what is applied ──> PretendKubelet: would its schedulers work?

What cannot be run here says so in a comment of the document, and is checked for what can be
checked. `tests/documents/markdown.py` explains the notation.
"""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubesched.config.features import FeatureGates
from kubesched.config.loading import decode
from kubesched.errors import ConfigError
from tests.documents.markdown import ROOT, Block, Command, Document, Kind, documents
from tests.documents.pretend_kubelet import LEASES, PretendKubelet
from tests.documents.terminal import CommandFailedError, Terminal
from tests.documents.unrun_commands import check

from .control_plane import CommandError, ControlPlane

DOCUMENTS = {
    each.name: each
    for each in documents()
    if any(block.kind is not Kind.TEXT for block in each.blocks)
}
PARAMETERS = [pytest.param(each, id=name) for name, each in DOCUMENTS.items()]


@pytest.fixture(scope="module")
def plane(assets: Path) -> Iterator[ControlPlane]:
    """The cluster of the reader."""
    with ControlPlane(assets) as started:
        yield started


@pytest.fixture
def kubelet(plane: ControlPlane, tmp_path: Path) -> PretendKubelet:
    return PretendKubelet(plane, tmp_path)


@pytest.mark.parametrize("document", PARAMETERS)
def test_what_a_document_says_is_what_happens(
    document: Document,
    plane: ControlPlane,
    kubelet: PretendKubelet,
    tmp_path: Path,
) -> None:
    follow(document, plane, kubelet, tmp_path)


def follow(document: Document, plane: ControlPlane, kubelet: PretendKubelet, folder: Path) -> None:
    """Do what a document says, from its beginning to its end."""
    with (
        _cluster_of(document, plane),
        Terminal(folder, assets=plane.assets, kubeconfig=plane.admin_kubeconfig) as terminal,
    ):
        for block in document.blocks:
            match block.kind:
                case Kind.COMMANDS:
                    _run(block, terminal, plane, kubelet)
                case Kind.FILE:
                    _must_be_readable(block)
                    terminal.save(block.file, block.text)
                case Kind.MANIFEST:
                    _apply(block, plane)
                case Kind.EXCERPT | Kind.TEXT:
                    pass


def _run(block: Block, terminal: Terminal, plane: ControlPlane, kubelet: PretendKubelet) -> None:
    if program := block.notes.get("ended"):
        terminal.end(program)
    *first, last = block.commands()
    if reason := block.notes.get("not run"):
        for command in (*first, last):
            print(f"not run: {command.where}: {command.text}: {reason}")
            check(command, kubectl=plane.assets / "kubectl")
        return
    for command in first:
        _run_one(command, terminal, kubelet)
    if until := block.notes.get("goes on"):
        terminal.run_on(last, until=until)
    else:
        _run_one(last, terminal, kubelet, code=int(block.notes.get("exit code", 0)))


def _run_one(
    command: Command, terminal: Terminal, kubelet: PretendKubelet, *, code: int = 0
) -> None:
    terminal.run(command, code=code)
    if "kubectl apply" in command.text and (wrong := kubelet.complaints()):
        raise CommandFailedError("\n".join([f"{command.where}: {command.text}", *wrong]))


def _must_be_readable(block: Block) -> None:
    """Raise if a file is not of its language, in case no command uses it."""
    try:
        match block.language:
            case "python":
                compile(block.text, block.file, "exec")
            case "yaml":
                list(yaml.safe_load_all(block.text))
            case "toml":
                tomllib.loads(block.text)
            case "json":
                for line in block.text.splitlines():
                    json.loads(line)
            case language:
                raise CommandFailedError(f"{block.where}: no check for files of {language}")
    except (SyntaxError, ValueError, yaml.YAMLError) as wrong:
        raise CommandFailedError(f"{block.where}: {block.file}: {wrong}") from None


def _apply(block: Block, plane: ControlPlane) -> None:
    """Have objects looked at by the program that they are for, without keeping them."""
    if "kind: KubeSchedulerConfiguration" in block.text:
        try:
            decode(block.text, gates=FeatureGates.of())
        except ConfigError as refused:
            raise CommandFailedError(f"{block.where}: {refused}") from None
        return
    try:
        plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f-", input=block.text)
    except CommandError as refused:
        raise CommandFailedError(f"{block.where}: {refused}") from None


@contextlib.contextmanager
def _cluster_of(document: Document, plane: ControlPlane) -> Iterator[None]:
    """Fill the reader's cluster with what the document says is in it; leave it empty."""
    namespaces: set[str] = set()
    try:
        if manifests := document.notes.get("cluster"):
            text = (ROOT / manifests).read_text()
            objects = [each["metadata"] for each in yaml.safe_load_all(text)]
            namespaces = {each["namespace"] for each in objects if "namespace" in each}
            for each in namespaces:
                plane.create_namespace(each)
            plane.kubectl("create", "-f-", input=text)
        yield
    finally:
        for each in namespaces:
            plane.delete_namespace(each)
        plane.purge_cluster()
        plane.purge(LEASES)


# --- would it be found? ---------------------------------------------------------------------------

#: What docs/plugins.md once deployed: a configuration for the reader's own machine.
CANNOT_START = """\
`overlay/scheduler.yaml`:

```yaml
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: kubeconfig
leaderElection:
  leaderElect: false
```

`overlay/kustomization.yaml`:

```yaml
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: kube-system
resources:
  - ../deploy/second-scheduler
configMapGenerator:
  - name: kubesched
    behavior: merge
    files:
      - scheduler.yaml
```

```sh
kubectl apply -k overlay
```
"""

#: What docs/simulate.md once showed: it names a file and a node that the reader does not have.
NAMES_WHAT_IS_NOT_THERE = """\
<!-- cluster: examples/shop.yaml -->

`day.yaml`:

```yaml
kind: Workload
duration: 1h
templates:
- name: nightly
  arrivals: {perHour: 4, pattern: even, count: 20}
  lifetime: {fixed: 10m}
  file: nightly.yaml
```

```sh
kubesched simulate run day.yaml
```
"""

REFUSED = """\
```yaml
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: -1
```
"""

WRONG = {
    "a scheduler that cannot start": (
        CANNOT_START,
        (
            "image 'kubesched:0.1.0' names no registry",
            "2 replicas without leader election all schedule at once",
            "the container ends: Error: cannot read kubeconfig kubeconfig",
        ),
    ),
    "a file that is not there": (NAMES_WHAT_IS_NOT_THERE, ("nightly.yaml",)),
    "another output": (
        "```console\n$ echo one; echo two\none\n```\n",
        ("the document shows\n    the end",),
    ),
    "a failure": ("```sh\nfalse\n```\n", ("ended with code 1, not 0",)),
    "no failure": (
        "<!-- exit code: 2 -->\n\n```sh\ntrue\n```\n",
        ("ended with code 0, not 2",),
    ),
    "a manifest that is refused": (
        "```yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {contaners: []}\n```\n",
        ("contaners",),
    ),
    "a configuration that is refused": (
        REFUSED,
        ("parallelism: Invalid value: -1",),
    ),
    "a file that cannot be read": ("`a.toml`:\n\n```toml\na = \n```\n", ("a.toml",)),
    "a file of the repository itself": (
        "`docs/a.yaml`:\n\n```yaml\na: 1\n```\n",
        ("would be written into the repository itself",),
    ),
    "a program in the background": ("```sh\nsleep 1 &\n```\n", ("give it a terminal",)),
    "a program that ends": (
        "<!-- goes on: ready -->\n\n```sh\necho hello\n```\n",
        ("before it said 'ready'",),
    ),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_in_a_document_is_found(
    text: str,
    said: tuple[str, ...],
    plane: ControlPlane,
    kubelet: PretendKubelet,
    tmp_path: Path,
) -> None:
    with pytest.raises(CommandFailedError) as failed:
        follow(Document.parse("page.md", text), plane, kubelet, tmp_path)

    assert [each for each in said if each not in str(failed.value)] == [], str(failed.value)
