"""Credentials from a program: ``exec`` in a kubeconfig (client.authentication.k8s.io).

    ExecCredential in $KUBERNETES_EXEC_INFO ──> program ──> ExecCredential on stdout
                                                              token, certificate and key, expiry

The program runs once, however many requests wait for it, and again when its credentials expire or
were rejected with 401. It never blocks the event loop and has a time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import sys
from datetime import UTC, datetime
from typing import IO, Any

import msgspec
from msgspec import Struct, field

from kubesched.client.credentials import load_certificate
from kubesched.client.memory_file import memory_file
from kubesched.clock import Clock, RealClock
from kubesched.errors import KubeconfigError

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_DEFAULT_TIMEOUT_S = 60.0
#: After a failed run, waiting requests do not repeat it for this long.
_FAILURE_PAUSE_S = 1.0
_LONGEST_QUOTE = 200


class ExecEnv(Struct, frozen=True):
    """An environment variable of the program."""

    name: str = ""
    value: str = ""


class ExecConfig(Struct, frozen=True, rename="camel"):
    """The ``exec`` field of a kubeconfig user."""

    command: str = ""
    args: list[str] | None = None
    env: list[ExecEnv] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class ExecCluster(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Cluster information for the program, if ``provideClusterInfo`` is set."""

    server: str
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    config: Any = None


class _ExecCredentialSpec(Struct, frozen=True, omit_defaults=True):
    interactive: bool
    cluster: ExecCluster | None = None


class _Request(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    spec: _ExecCredentialSpec


class _Credential(Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Answer(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Credential | None = field(default=None)


class ExecCredentials:
    """Runs the program when its last credentials are no longer valid."""

    def __init__(
        self,
        config: ExecConfig,
        *,
        where: str,
        cluster: ExecCluster | None = None,
        context: ssl.SSLContext | None = None,
        clock: Clock | None = None,
        timeout_s: float = _DEFAULT_TIMEOUT_S,
    ) -> None:
        #: the kubeconfig file and user, for error messages
        self._where = where
        self._config = config
        self._cluster = cluster
        self._context = context
        self._clock = clock or RealClock()
        self._timeout_s = timeout_s
        self._lock = asyncio.Lock()
        self._generation = 0
        self._valid = False
        self._header: str | None = None
        self._certificate: tuple[str, str] = ("", "")
        #: wall-clock time, None: never
        self._expires: float | None = None
        self._failure: tuple[float, KubeconfigError] | None = None

    @property
    def generation(self) -> int:
        """The number of certificates so far."""
        return self._generation

    async def authorization_header(self) -> str | None:
        """Return the program's token, cached while it is valid."""
        if self._is_good():
            return self._header
        async with self._lock:
            if not self._is_good():
                self._raise_recent_failure()
                try:
                    self._accept(await self._run())
                except KubeconfigError as error:
                    self._failure = (self._clock.monotonic(), error)
                    raise
        return self._header

    def invalidate(self, header: str | None) -> bool:
        """Run the program before the next request, unless it has run since ``header`` was read."""
        if header == self._header:
            self._valid = False
        return True

    def _is_good(self) -> bool:
        return self._valid and (self._expires is None or self._clock.time() < self._expires)

    def _raise_recent_failure(self) -> None:
        if self._failure is None:
            return
        since, error = self._failure
        if self._clock.monotonic() - since < _FAILURE_PAUSE_S:
            raise KubeconfigError(str(error)) from error

    def _error(self, problem: str) -> KubeconfigError:
        return KubeconfigError(f"{self._where}: exec plugin {self._config.command}: {problem}")

    async def _run(self) -> _Answer:
        interactive = self._interactive()
        request = _Request(
            api_version=self._config.api_version,
            kind="ExecCredential",
            spec=_ExecCredentialSpec(interactive=interactive, cluster=self._cluster),
        )
        environment = dict(os.environ)
        environment.update({item.name: item.value for item in self._config.env or ()})
        environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(request).decode()
        output = await self._output(environment, interactive=interactive)
        try:
            return msgspec.json.decode(output, type=_Answer)
        except msgspec.DecodeError as error:
            raise self._error(f"its output is not an ExecCredential: {error}") from error

    def _interactive(self) -> bool:
        mode = self._config.interactive_mode
        if mode == "Never":
            return False
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not terminal:
            raise self._error(
                "interactiveMode is Always, but standard input is not a terminal; "
                "use a plugin that can run without one"
            )
        return terminal

    async def _output(self, environment: dict[str, str], *, interactive: bool) -> bytes:
        """Run to the end and return stdout; leaves no process behind in any case."""
        # Files instead of pipes: a pipe stays open as long as any child of the program holds it.
        with memory_file() as stdout, memory_file() as stderr:
            process = await self._start(
                environment,
                interactive=interactive,
                stdout=stdout,
                stderr=None if interactive else stderr,
            )
            try:
                async with asyncio.timeout(self._timeout_s):
                    code = await process.wait()
            except TimeoutError:
                raise self._error(f"no answer within {self._timeout_s:g} s") from None
            finally:
                await _end(process, whole_session=not interactive)
            if code != 0:
                said = _last_line(_content(stderr))
                raise self._error(f"failed with exit code {code}{said}")
            return _content(stdout)

    async def _start(
        self,
        environment: dict[str, str],
        *,
        interactive: bool,
        stdout: IO[bytes],
        stderr: IO[bytes] | None,
    ) -> asyncio.subprocess.Process:
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                self._config.command,
                *(self._config.args or ()),
                env=environment,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                # Own session: a timeout kills the program's children too.
                start_new_session=not interactive,
            )
        )
        try:
            return await asyncio.shield(starting)
        except OSError as error:
            raise self._not_started(error) from error
        except asyncio.CancelledError:  # it may have started already
            with contextlib.suppress(OSError):
                await _end(await starting, whole_session=not interactive)
            raise

    def _not_started(self, error: OSError) -> KubeconfigError:
        if isinstance(error, FileNotFoundError):
            hint = " ".join(self._config.install_hint.split())
            return self._error(f"executable not found; install it{': ' + hint if hint else ''}")
        return self._error(f"cannot be started: {error.strerror or error}")

    def _accept(self, answer: _Answer) -> None:
        if answer.api_version != self._config.api_version:
            raise self._error(
                f"is configured to use API version {self._config.api_version}, "
                f"plugin returned version {answer.api_version or '(none)'}"
            )
        status = answer.status
        if status is None:
            raise self._error("didn't return a status field")
        if not (status.token or status.client_certificate_data or status.client_key_data):
            raise self._error("didn't return a token or cert/key pair")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._error("returned only certificate or key, not both")
        self._take_certificate(status)
        self._header = f"Bearer {status.token}" if status.token else None
        self._expires = _seconds(status.expiration_timestamp)
        self._failure = None
        self._valid = True

    def _take_certificate(self, status: _Credential) -> None:
        pair = (status.client_certificate_data, status.client_key_data)
        if pair == self._certificate:
            return
        if pair[0] and self._context is not None:
            try:
                load_certificate(self._context, pair[0].encode(), pair[1].encode())
            except (ssl.SSLError, OSError) as error:
                raise self._error(f"failed parsing client key/certificate: {error}") from error
        self._certificate = pair
        self._generation += 1


def _seconds(moment: datetime | None) -> float | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _last_line(stderr: bytes) -> str:
    """Return the program's last line, for the end of our message."""
    lines = stderr.decode(errors="replace").split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    printable = "".join(char if char.isprintable() else "?" for char in said)
    return f": {printable[:_LONGEST_QUOTE]}" if printable else ""


async def _end(process: asyncio.subprocess.Process, *, whole_session: bool) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        if whole_session:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()
