"""Credentials from a program: how it is asked, when it runs, what is said when it fails."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trustme

from kubesched.client.access import tls_context
from kubesched.client.exec_plugin import ExecCluster, ExecConfig, ExecCredentials, ExecEnv
from kubesched.clock import VirtualClock
from kubesched.errors import KubeconfigError
from tests.support.servers import JsonObject
from tests.support.waiting import eventually, until

from .conftest import Run

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def _script(folder: Path, *lines: str) -> str:
    file = folder / "plugin"
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)
    return str(file)


def _credential(status: JsonObject | None, *, version: str = V1) -> str:
    answer: JsonObject = {"apiVersion": version, "kind": "ExecCredential"}
    if status is not None:
        answer["status"] = status
    return json.dumps(answer)


def _plugin(command: str, **options: Any) -> ExecCredentials:
    names = ("args", "env", "api_version", "install_hint", "interactive_mode")
    fields = {name: options.pop(name) for name in names if name in options}
    config = ExecConfig(
        **{"command": command, "api_version": V1, "interactive_mode": "Never", **fields}
    )
    return ExecCredentials(config, where="config: users[me].exec", **options)


class TestTokens:
    def test_the_program_runs_once_for_many_requests(self, run: Run, tmp_path: Path) -> None:
        answer = _credential({"token": "secret"})
        command = _script(tmp_path, f"echo run >> {tmp_path}/log", f"echo '{answer}'")

        async def main() -> None:
            plugin = _plugin(command)
            headers = await asyncio.gather(*(plugin.authorization_header() for _ in range(20)))
            assert set(headers) == {"Bearer secret"}
            assert await plugin.authorization_header() == "Bearer secret"

        run(main())
        assert (tmp_path / "log").read_text() == "run\n"

    @pytest.mark.parametrize("version", [V1, V1BETA1])
    def test_it_is_told_what_it_needs_to_know(
        self, run: Run, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("INHERITED", "yes")
        answer = _credential({"token": "t"}, version=version)
        command = _script(
            tmp_path,
            f'printf "%s" "$KUBERNETES_EXEC_INFO" > {tmp_path}/info',
            f'printf "%s/%s/%s" "$INHERITED" "$OWN" "$*" > {tmp_path}/rest',
            f"cat > {tmp_path}/stdin",
            f"echo '{answer}'",
        )
        plugin_options: JsonObject = {
            "api_version": version,
            "args": ["get", "token"],
            "env": [ExecEnv("OWN", "mine")],
            "cluster": ExecCluster(
                server="https://api:6443",
                certificate_authority_data="UEVN",
                tls_server_name="api",
                config={"audience": "x"},
            ),
        }

        async def main() -> None:
            await _plugin(command, **plugin_options).authorization_header()

        run(main())
        assert json.loads((tmp_path / "info").read_text()) == {
            "apiVersion": version,
            "kind": "ExecCredential",
            "spec": {
                "interactive": False,
                "cluster": {
                    "server": "https://api:6443",
                    "certificate-authority-data": "UEVN",
                    "tls-server-name": "api",
                    "config": {"audience": "x"},
                },
            },
        }
        assert (tmp_path / "rest").read_text() == "yes/mine/get token"
        assert (tmp_path / "stdin").read_text() == ""

    def test_an_expired_token_is_replaced(self, run_once: Run, tmp_path: Path) -> None:
        (tmp_path / "answer").write_text(
            _credential({"token": "one", "expirationTimestamp": "1970-01-01T00:01:00Z"})
        )
        command = _script(tmp_path, f"cat {tmp_path}/answer")
        clock = VirtualClock()

        async def main() -> None:
            plugin = _plugin(command, clock=clock)
            assert await plugin.authorization_header() == "Bearer one"
            (tmp_path / "answer").write_text(_credential({"token": "two"}))
            clock.advance(59)
            assert await plugin.authorization_header() == "Bearer one"
            clock.advance(1)
            assert await plugin.authorization_header() == "Bearer two"
            clock.advance(1e6)
            assert await plugin.authorization_header() == "Bearer two"

        run_once(main())

    def test_a_refused_token_is_replaced_once_for_all(self, run_once: Run, tmp_path: Path) -> None:
        (tmp_path / "template").write_text(_credential({"token": "tNUMBER"}))
        command = _script(
            tmp_path,
            f"echo run >> {tmp_path}/log",
            f"sed s/NUMBER/$(wc -l < {tmp_path}/log)/ {tmp_path}/template",
        )

        async def main() -> None:
            plugin = _plugin(command)
            first = await plugin.authorization_header()
            assert first == "Bearer t1"
            for _ in range(5):  # five requests were refused with the same token
                assert plugin.invalidate(first)
                second = await plugin.authorization_header()
            assert second == "Bearer t2"

        run_once(main())
        assert (tmp_path / "log").read_text() == "run\nrun\n"


class TestCertificates:
    def test_a_certificate_goes_into_the_context_and_counts(
        self, run_once: Run, tmp_path: Path, authority: trustme.CA
    ) -> None:
        def write(name: str) -> None:
            pair = authority.issue_cert("x", common_name=name)
            (tmp_path / "answer").write_text(
                _credential(
                    {
                        "clientCertificateData": pair.cert_chain_pems[0].bytes().decode(),
                        "clientKeyData": pair.private_key_pem.bytes().decode(),
                    }
                )
            )

        write("one")
        command = _script(tmp_path, f"cat {tmp_path}/answer")

        async def main() -> None:
            plugin = _plugin(command, context=tls_context(ca_pem=None))
            before = plugin.generation
            assert await plugin.authorization_header() is None
            loaded = plugin.generation
            assert loaded != before
            plugin.invalidate(None)
            await plugin.authorization_header()
            assert plugin.generation == loaded  # the same certificate again
            write("two")
            plugin.invalidate(None)
            await plugin.authorization_header()
            assert plugin.generation != loaded

        run_once(main())

    def test_a_bad_certificate_is_an_error(self, run_once: Run, tmp_path: Path) -> None:
        answer = _credential({"clientCertificateData": "x", "clientKeyData": "y"})
        command = _script(tmp_path, f"echo '{answer}'")

        async def main() -> None:
            with pytest.raises(KubeconfigError, match="failed parsing client key/certificate"):
                await _plugin(command, context=tls_context(ca_pem=None)).authorization_header()

        run_once(main())


class TestFailures:
    @pytest.mark.parametrize(
        ("output", "complaint"),
        [
            ("no json", "its output is not an ExecCredential"),
            (_credential(None), "didn't return a status field"),
            (_credential({}), "didn't return a token or cert/key pair"),
            (_credential({"clientKeyData": "x"}), "only certificate or key, not both"),
            (
                _credential({"token": "t"}, version=V1BETA1),
                f"configured to use API version {V1}, plugin returned version {V1BETA1}",
            ),
            (_credential({"token": "t", "expirationTimestamp": "soon"}), "not an ExecCredential"),
        ],
    )
    def test_a_bad_answer(self, run_once: Run, tmp_path: Path, output: str, complaint: str) -> None:
        command = _script(tmp_path, f"echo '{output}'")

        async def main() -> None:
            with pytest.raises(KubeconfigError, match=complaint) as error:
                await _plugin(command).authorization_header()
            assert str(error.value).startswith(f"config: users[me].exec: exec plugin {command}: ")

        run_once(main())

    def test_a_failing_program_is_quoted(self, run: Run, tmp_path: Path) -> None:
        command = _script(tmp_path, "echo 'first' >&2", "echo 'please log in' >&2", "exit 3")

        async def main() -> None:
            with pytest.raises(KubeconfigError, match=r"failed with exit code 3: please log in$"):
                await _plugin(command).authorization_header()

        run(main())

    def test_a_missing_program_comes_with_its_hint(self, run: Run) -> None:
        async def main() -> None:
            plugin = _plugin("no-such-plugin", install_hint="get it\nfrom example.org")
            with pytest.raises(KubeconfigError) as error:
                await plugin.authorization_header()
            assert str(error.value) == (
                "config: users[me].exec: exec plugin no-such-plugin: executable not found; "
                "install it: get it from example.org"
            )

        run(main())

    def test_a_file_that_cannot_be_run(self, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "plugin"
        file.write_text("x")

        async def main() -> None:
            with pytest.raises(KubeconfigError, match="cannot be started: Permission denied"):
                await _plugin(str(file)).authorization_header()

        run(main())

    def test_a_program_that_hangs_is_ended_with_its_children(
        self, run: Run, tmp_path: Path
    ) -> None:
        command = _script(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; wait")

        async def main() -> None:
            # Time enough for a shell to start its child, however busy the machine is.
            plugin = _plugin(command, timeout_s=1.5)
            started = time.monotonic()
            with pytest.raises(KubeconfigError, match=r"no answer within 1.5 s"):
                await plugin.authorization_header()
            assert time.monotonic() - started < 10

        run(main())
        child = int((tmp_path / "child").read_text())
        until(lambda: not Path(f"/proc/{child}").exists() or _is_zombie(child))

    def test_a_cancelled_wait_ends_the_program(self, run: Run, tmp_path: Path) -> None:
        command = _script(tmp_path, f"echo $$ > {tmp_path}/pid", "exec sleep 600")

        async def main() -> None:
            task = asyncio.create_task(_plugin(command).authorization_header())
            pid = tmp_path / "pid"
            await eventually(lambda: pid.exists() and pid.read_text().endswith("\n"))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(main())
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)

    def test_waiting_requests_do_not_repeat_a_failure(self, run_once: Run, tmp_path: Path) -> None:
        command = _script(tmp_path, f"echo run >> {tmp_path}/log", "exit 1")
        clock = VirtualClock()

        async def main() -> None:
            plugin = _plugin(command, clock=clock)
            outcomes = await asyncio.gather(
                *(plugin.authorization_header() for _ in range(10)), return_exceptions=True
            )
            assert all(isinstance(outcome, KubeconfigError) for outcome in outcomes)
            assert (tmp_path / "log").read_text() == "run\n"
            clock.advance(2)
            with pytest.raises(KubeconfigError):
                await plugin.authorization_header()

        run_once(main())
        assert (tmp_path / "log").read_text() == "run\nrun\n"

    def test_always_interactive_needs_a_terminal(
        self, run_once: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with (tmp_path / "stdin").open("w+") as not_a_terminal:
            monkeypatch.setattr(sys, "stdin", not_a_terminal)

            async def main() -> None:
                plugin = _plugin("true", interactive_mode="Always")
                with pytest.raises(KubeconfigError, match="standard input is not a terminal"):
                    await plugin.authorization_header()

            run_once(main())


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
