"""Whatever the command: a full disk, an early Ctrl-C and broken files are no tracebacks.

All commands are found by their parsers; one that is not listed here fails the first test.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import kubesched as package
from kubesched.cli.kubesched import main, make_parser

Words = tuple[str, ...]

CLUSTER = """\
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}},
 status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop},
 spec: {containers: [{name: c, image: i}]}}
"""
POD = "{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {containers: [{name: c}]}}"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
TRACE = """\
kind: Workload
duration: 1m
templates:
- name: web
  arrivals: {perHour: 600}
  pod: {spec: {containers: [{name: c}]}}
"""

#: What each command needs to do something; FOLDER is one with the files above.
COMMANDS: dict[Words, Words] = {
    ("demo",): ("--pods=300", "--nodes=20"),
    ("bench",): ("--decisions", "--nodes=50", "--pods=50"),
    ("completion",): ("bash",),
    ("config", "convert"): ("FOLDER/old.yaml",),
    ("config", "diff"): ("FOLDER/old.yaml", "FOLDER/config.yaml"),
    ("explain",): ("shop/web", "--manifests=FOLDER/cluster.yaml"),
    ("history",): ("shop/web", "--recording=FOLDER/missing"),
    ("replay",): ("FOLDER/missing",),
    ("simulate", "apply"): ("--file=FOLDER/pod.yaml", "--manifests=FOLDER/cluster.yaml"),
    ("simulate", "headroom"): ("shop/web", "--manifests=FOLDER/cluster.yaml"),
    ("simulate", "add"): ("1", "--like=n1", "--manifests=FOLDER/cluster.yaml"),
    ("simulate", "drain"): ("n1", "--manifests=FOLDER/cluster.yaml"),
    ("simulate", "loss"): ("--each=node", "--manifests=FOLDER/cluster.yaml"),
    ("simulate", "config"): ("--to=FOLDER/config.yaml", "--manifests=FOLDER/cluster.yaml"),
    ("simulate", "run"): ("FOLDER/trace.yaml", "--manifests=FOLDER/cluster.yaml"),
    ("simulate", "sweep"): ("FOLDER/trace.yaml", "--jobs=1", "--manifests=FOLDER/cluster.yaml"),
    ("snapshot",): ("--output=-", "--manifests=FOLDER/cluster.yaml"),
    ("shadow",): ("--kubeconfig=FOLDER/kubeconfig",),
    ("ui",): ("--no-browser", "--manifests=FOLDER/cluster.yaml"),
    ("version",): (),
    ("kube-scheduler",): ("--kubeconfig=FOLDER/kubeconfig", "--secure-port=0"),
}
#: What commands end with that cannot do their work, if it is not 1.
TROUBLE: dict[Words, int] = {("config", "diff"): 2, ("simulate", "apply"): 2}
#: Commands that Ctrl-C is the proper end of.
ENDLESS = {("ui",), ("shadow",), ("kube-scheduler",)}
#: What commands print soon that need an API server, a recording or some time.
PRINTING: dict[Words, Words] = {
    ("bench",): ("--list",),
    ("history",): ("--help",),
    ("replay",): ("--help",),
    ("shadow",): ("--help",),
    ("kube-scheduler",): ("--help",),
}
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u}]
"""
_SIGINT_AFTER_S = (0.0, 0.01, 0.05, 0.15, 0.3)
_ENTERED = "entered\n"


def leaves(
    parser: argparse.ArgumentParser, words: Words = ()
) -> Iterator[tuple[Words, argparse.ArgumentParser]]:
    """All commands that do something, with their parsers."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not below:
        yield words, parser
    for each in below:
        for name, command in each.choices.items():
            yield from leaves(command, (*words, name))


PARSERS = dict(leaves(make_parser()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    for name, text in (
        ("cluster.yaml", CLUSTER),
        ("config.yaml", CONFIG),
        ("pod.yaml", POD),
        ("old.yaml", CONFIG.replace("/v1", "/v1beta2")),
        ("trace.yaml", TRACE),
        ("kubeconfig", KUBECONFIG),
    ):
        (path / name).write_text(text)
    return path


def command_line(words: Words, folder: Path, *more: str) -> list[str]:
    """A command as its console script runs it; says when it was entered."""
    script = "kube_scheduler" if words == ("kube-scheduler",) else "kubesched"
    code = (
        f"import sys; from kubesched.cli.entry import {script} as main; "
        f"sys.stderr.write({_ENTERED!r}); sys.stderr.flush(); sys.exit(main())"
    )
    given = words if script == "kubesched" else ()
    filled = [each.replace("FOLDER", str(folder)) for each in more]
    return [sys.executable, "-c", code, *given, *filled]


def environment(folder: Path) -> dict[str, str]:
    source = str(Path(package.__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": source, "TMPDIR": str(folder), "HOME": str(folder)}


def test_all_commands_are_here() -> None:
    assert COMMANDS.keys() - {("kube-scheduler",)} == PARSERS.keys()


# --- a full disk ------------------------------------------------------------------------------


def _to_full_disk(words: Words, folder: Path, arguments: Words) -> tuple[Words, int, str]:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command_line(words, folder, *arguments),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=180,
            env={**environment(folder), "PYTHONUNBUFFERED": ""},
        )
    return words, ended.returncode, ended.stderr.removeprefix(_ENTERED)


def test_output_that_cannot_be_written_is_one_line(folder: Path) -> None:
    cases = [(words, PRINTING.get(words, needs)) for words, needs in COMMANDS.items()]
    with ThreadPoolExecutor(max_workers=4) as pool:
        for words, code, said in pool.map(
            lambda each: _to_full_disk(each[0], folder, each[1]), cases
        ):
            assert "Traceback" not in said, (words, said)
            assert code == TROUBLE.get(words, 1), (words, said)
            assert [line for line in said.splitlines() if line.startswith("Error: ")] == [
                said.splitlines()[-1]
            ], (words, said)
            assert "no space left on device" in said.lower(), (words, said)


# --- Ctrl-C -----------------------------------------------------------------------------------


def _interrupted(words: Words, folder: Path, after_s: float) -> tuple[Words, bool, int, str]:
    process = subprocess.Popen(
        command_line(words, folder, *COMMANDS[words]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
    )
    assert process.stderr is not None
    process.stderr.readline()  # it has been entered
    time.sleep(after_s)  # moments are what is tested
    was_running = process.poll() is None
    if was_running:
        process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    return words, was_running, process.returncode, said


@pytest.mark.parametrize("after_s", _SIGINT_AFTER_S)
def test_an_early_interrupt_is_no_traceback(folder: Path, after_s: float) -> None:
    with ThreadPoolExecutor(max_workers=3) as pool:
        for words, was_running, code, said in pool.map(
            lambda each: _interrupted(each, folder, after_s), COMMANDS
        ):
            assert "Traceback" not in said, (words, said)
            assert "KeyboardInterrupt" not in said, (words, said)
            if was_running:
                assert code != 0 or words in ENDLESS, (words, code, said)


@pytest.mark.parametrize(("is_interrupted", "code"), [(True, 130), (False, 1)])
def test_an_interrupt_of_a_late_import_is_no_traceback(is_interrupted: bool, code: int) -> None:
    """NumPy says that it failed to import, and Python wraps what happens while a class is made."""
    program = f"""
import signal, sys
from kubesched.cli import entry, kubesched

def main():
    try:
        if {is_interrupted}:
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass
    raise ImportError("failed to import")

kubesched.main = main
sys.exit(entry.kubesched())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert ended.returncode == code
    assert (b"Traceback" in ended.stderr) == (not is_interrupted)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_no_temporary_folder_is_left(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        command_line(("demo",), tmp_path, "--keep", "--pods=1", "--nodes=1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(tmp_path),
        # Under nohup, the tests pass an ignored SIGHUP on, which the command would respect.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509 (no threads here)
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "End it with Ctrl-C" in line:
            break
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("kubesched-")]

    process.send_signal(number)

    process.communicate(timeout=30)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("kubesched-")] == []


# --- broken files -----------------------------------------------------------------------------

BROKEN = {"junk": b"\x00\xff\x1f\x8b junk", "cut off": b"a: [b", "gzip": b"\x1f\x8b\x08\x00cut"}
#: Options that name an output, or a folder for outputs.
OUTPUTS = {"output", "report", "results"}
SOURCES = {"kubeconfig", "snapshot", "manifests", "recording"}


def _file_options() -> Iterator[tuple[Words, str]]:
    """All options and arguments that name a file to be read."""
    for words, parser in PARSERS.items():
        for action in parser._actions:
            is_file = action.type is Path or action.dest == "plugin"
            if is_file and action.dest not in OUTPUTS:
                yield words, action.option_strings[-1] if action.option_strings else action.dest


@pytest.mark.parametrize("content", [*BROKEN, "folder", "nothing"])
@pytest.mark.parametrize(
    ("words", "option"),
    [pytest.param(*each, id=" ".join((*each[0], each[1]))) for each in _file_options()],
)
def test_a_broken_file_is_one_line_that_names_it(  # noqa: PLR0917
    folder: Path,
    tmp_path: Path,
    words: Words,
    option: str,
    content: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = tmp_path / "broken"
    if content == "folder":
        broken.mkdir()
    elif content in BROKEN:
        broken.write_bytes(BROKEN[content])
    given = [each.replace("FOLDER", str(folder)) for each in COMMANDS[words]]
    if option.startswith("--"):
        # Only one source, one file and one pod can be given.
        if option.removeprefix("--") in SOURCES:
            given = [each for each in given if not each.startswith("--manifests=")]
        if option == "--file" and not given[0].startswith("--"):
            given = given[1:]
        if words == ("bench",):
            given = ["--apiserver=embedded"]
        given = [each for each in given if not each.startswith(f"{option}=")]
        given.append(f"{option}={broken}")
    else:
        given = [str(broken), *given[1:]]

    code = main([*words, *given])

    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if not line.startswith(("Note: ", "Listing "))]
    assert code == TROUBLE.get(words, 1), said
    assert len(lines) == 1, said
    assert lines[0].startswith("Error: ")
    assert "<unicode string>" not in said
    if words != ("replay",) or option == "file":
        assert str(broken) in said
