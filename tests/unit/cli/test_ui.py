"""``kubesched ui``: which cluster is shown, and how the command ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kubesched
from kubesched.cli import kubesched as command
from kubesched.cli import ui
from kubesched.cli.options import make_options
from kubesched.errors import ConfigError
from kubesched.snapshot import files
from tests.support.objects import node, pod
from tests.support.worlds import snapshot_of


@contextmanager
def running(*flags: str) -> Iterator[str]:
    """Run the command until the test is done; yields the printed address."""
    source = str(Path(kubesched.__file__).resolve().parents[1])
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", "ui", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source, "DISPLAY": ":77"},
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        yield next(line.strip() for line in lines if "token=" in line)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=10)
        assert (process.returncode, complaints) == (0, "")
    finally:
        process.kill()
        process.communicate()


def get(url: str, path: str, **headers: str) -> tuple[int, Any]:
    """Ask a page on loopback."""
    host = url.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(host, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.load(answer)
    finally:
        connection.close()


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.gz"
    objects = (node("n1"), pod("placed", node="n1"), pod("waiting", cpu="9"))
    files.write(snapshot_of(objects), path, taken_at="2026-01-01T00:00:00+00:00")
    return path


def test_a_snapshot_is_served_until_the_command_is_ended(snapshot: Path) -> None:
    with running("--snapshot", str(snapshot)) as url:
        known = {"Authorization": f"Bearer {url.partition('token=')[2]}"}
        _, told = get(url, "/ui/api/overview", **known)
        assert (told["source"], told["nodes"], told["pods"]["placed"]) == ("snapshot", 1, 1)
        _, explained = get(url, "/ui/api/pods/default/waiting/explanation", **known)
        assert explained["outcome"] == "Unschedulable"
        assert get(url, "/ui/api/overview")[0] == 401


def refusal(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    assert command.main(["ui", *flags]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    return line


def test_mistakes_are_said_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: Path
) -> None:
    absent = str(tmp_path / "absent")
    empty = tmp_path / "empty"
    empty.touch()

    assert "cannot read" in refusal(capsys, "--snapshot", absent)
    assert absent in refusal(capsys, "--recording", absent)
    assert str(empty) in refusal(capsys, "--recording", str(empty))
    assert "exclude each other" in refusal(
        capsys, "--recording", absent, "--snapshot", str(snapshot)
    )
    assert "exclude each other" in refusal(
        capsys, "--manifests", absent, "--snapshot", str(snapshot)
    )
    assert "a number from 0 to 65535" in refusal(capsys, "--port", "70000")
    assert "kubeconfig" in refusal(capsys, "--kubeconfig", absent)


def test_a_cluster_that_cannot_be_reached_is_said_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
        "current-context": "c",
    }
    kubeconfig.write_text(json.dumps(config))

    assert command.main(["ui", "--kubeconfig", str(kubeconfig), "--no-browser"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("Error: ")
    assert "127.0.0.1:9" in said[-1]


def test_a_browser_is_not_given_the_token_where_others_can_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)

    with ui._browser("http://127.0.0.1:1/ui/?token=secret"):
        (address,) = opened
        assert "secret" not in address
        page = Path(address.removeprefix("file://"))
        assert "token=secret" in page.read_text()
        assert page.stat().st_mode & 0o077 == 0
        assert page.parent.stat().st_mode & 0o077 == 0
    assert not page.exists()


def test_the_scheduler_has_a_page_only_if_asked_for() -> None:
    assert not make_options([]).web_ui
    assert make_options(["--web-ui"]).web_ui
    with pytest.raises(ConfigError, match="--web-ui needs a --secure-port"):
        make_options(["--web-ui", "--secure-port=0"])
