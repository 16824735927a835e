"""The ``kube-scheduler`` command: the flags of kube-scheduler that this version honours."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.cli import logs, running
from kubesched.cli.parsing import Parser
from kubesched.config import encoding, loading
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError, KubeschedError, UsageError

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        flags = _parse([_dashed(argument) for argument in arguments])
        if flags.version:
            print(f"Kubernetes {KUBERNETES_VERSION} (kubesched {__version__})")
            return 0
        logs.configure(flags.v)
        gates = FeatureGates.parse(
            ",".join(flags.feature_gates), emulated_version=flags.emulated_version
        )
        config = _configuration(flags, gates)
        if flags.write_config_to:
            _write_config(config, Path(flags.write_config_to))
            return 0
    except KubeschedError as refused:
        print(f"Error: {refused}", file=sys.stderr)
        return 1
    return running.run(lambda: _serve(flags, config, gates))


async def _serve(
    flags: argparse.Namespace, config: SchedulerConfiguration, gates: FeatureGates
) -> None:
    # What --help and --version need not load: NumPy, and all of the scheduler.
    from kubesched.app import App  # noqa: PLC0415
    from kubesched.client import kubeconfig  # noqa: PLC0415

    _log.info("Starting kubesched %s for Kubernetes %s", __version__, KUBERNETES_VERSION)
    if config.leader_election.leader_elect:
        _log.warning(
            "leader election is not available in this version: run one replica, "
            "and say --leader-elect=false to silence this"
        )
    access = kubeconfig.for_component(
        config.client_connection.kubeconfig or None, master=flags.master or None
    )
    app = App(
        config,
        gates,
        access,
        seed=flags.seed,
        max_unschedulable_s=flags.pod_max_in_unschedulable_pods_duration,
    )
    try:
        await app.run()
    except asyncio.CancelledError:
        _log.info("Requested to terminate, exiting")
        raise


def _configuration(flags: argparse.Namespace, gates: FeatureGates) -> SchedulerConfiguration:
    def amend(config: SchedulerConfiguration) -> SchedulerConfiguration:
        if flags.leader_elect is None:
            return config
        election = replace(config.leader_election, leader_elect=flags.leader_elect)
        return replace(config, leader_election=election)

    if flags.config:
        # As in kube-scheduler, a configuration file makes the deprecated flags meaningless.
        config = loading.load(flags.config, gates=gates, amend=amend)
    else:
        config = SchedulerConfiguration.default(gates)
        connection = replace(
            config.client_connection,
            kubeconfig=flags.kubeconfig,
            qps=flags.kube_api_qps,
            burst=flags.kube_api_burst,
        )
        config = amend(replace(config, client_connection=connection))
    return config


def _write_config(config: SchedulerConfiguration, path: Path) -> None:
    try:
        path.write_text(encoding.to_yaml(encoding.used_profiles(config)))
    except OSError as failed:
        raise ConfigError(f"--write-config-to {path}: {failed.strerror}") from None


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="kube-scheduler",
        description="Gives every pod of a Kubernetes cluster its node.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", default="", metavar="FILE", help="configuration file")
    parser.add_argument(
        "--write-config-to",
        default="",
        metavar="FILE",
        help="write the complete configuration to a file and exit",
    )
    parser.add_argument("--master", default="", metavar="URL", help="address of the API server")
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE", help="how to reach it (not with --config)"
    )
    parser.add_argument("--kube-api-qps", type=float, default=50.0, metavar="N")
    parser.add_argument("--kube-api-burst", type=int, default=100, metavar="N")
    parser.add_argument(
        "--leader-elect", type=_boolean, nargs="?", const=True, default=None, metavar="BOOL"
    )
    parser.add_argument(
        "--pod-max-in-unschedulable-pods-duration",
        type=_seconds,
        default=300.0,
        metavar="DURATION",
        help="how long a pod stays parked if nothing wakes it (default 5m0s)",
    )
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="NAME=BOOL,...",
        help="switch features on and off",
    )
    parser.add_argument("--emulated-version", default="", metavar="MAJOR.MINOR")
    parser.add_argument(
        "--seed",
        type=int,
        default=None,
        metavar="N",
        help="settles ties between equally good nodes in the same way every time",
    )
    parser.add_argument("-v", "--v", type=int, default=0, metavar="LEVEL", help="how much to log")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    flags, unknown = parser.parse_known_args(arguments)
    for argument in unknown:
        if argument.startswith("-"):
            parser.error(f"unknown flag: {argument.partition('=')[0]}")
        raise UsageError(f'"kube-scheduler" does not take any arguments, got {unknown}')
    return flags


def _dashed(argument: str) -> str:
    """Accept ``_`` for ``-`` in the names of flags."""
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value


def _boolean(text: str) -> bool:
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def _seconds(text: str) -> float:
    try:
        return Duration.parse(text).seconds
    except ConfigError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


if __name__ == "__main__":
    sys.exit(main())
