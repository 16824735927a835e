"""Flags that select the cluster (live, a file, manifests) and the scheduler's configuration."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from kubesched.client.access import ClusterAccess
    from kubesched.config.features import FeatureGates
    from kubesched.config.types import SchedulerConfiguration
    from kubesched.framework.registry import Registry
    from kubesched.snapshot.contents import Snapshot


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select the cluster; the current kubeconfig's is the default."""
    group = parser.add_argument_group("cluster (default: that of the current kubeconfig)")
    add_access(group)
    group.add_argument(
        "--snapshot", type=Path, metavar="FILE", help="a file that 'kubesched snapshot' wrote"
    )
    group.add_argument(
        "--manifests",
        type=Path,
        action="append",
        metavar="PATH",
        help="a folder or file of manifests (YAML, JSON); may be repeated",
    )


def add_access(parser: argparse._ActionsContainer) -> None:
    """Add the flags of how to reach a live cluster: kubectl's."""
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="how to reach the cluster")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    parser.add_argument(
        "-s", "--server", metavar="URL", help="address of the API server, instead of the context's"
    )
    parser.add_argument(
        "--as", dest="as_user", default="", metavar="USER", help="user to impersonate"
    )
    parser.add_argument(
        "--as-group",
        action="append",
        default=[],
        metavar="GROUP",
        help="group to impersonate; may be repeated",
    )


def names_access(flags: argparse.Namespace) -> bool:
    """Whether a flag says how to reach a live cluster."""
    return bool(
        flags.kubeconfig or flags.context or flags.server or flags.as_user or flags.as_group
    )


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the scheduler's configuration."""
    group = parser.add_argument_group("scheduler (default: kube-scheduler's defaults)")
    group.add_argument("--config", type=Path, metavar="FILE", help="its KubeSchedulerConfiguration")
    group.add_argument("--feature-gates", default="", metavar="A=true,…", help="its feature gates")


def add_plugins(parser: argparse.ArgumentParser) -> None:
    """Add the flag of plugins that are not in the tree."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE[:CLASS]",
        help="Python file with plugins that the configuration may enable; may be repeated",
    )


def read_snapshot(flags: argparse.Namespace) -> Snapshot:
    """Read the selected cluster; raises KubeschedError."""
    from kubesched.config.features import FeatureGates  # noqa: PLC0415 (costs time to import)
    from kubesched.snapshot import files, live, manifests  # noqa: PLC0415

    given = [
        flag
        for flag, value in (
            ("--snapshot", flags.snapshot),
            ("--manifests", flags.manifests),
            ("flags of a live cluster", names_access(flags)),
        )
        if value
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other: name one cluster")
    if flags.snapshot:
        return files.read(flags.snapshot)
    if flags.manifests:
        return manifests.read(flags.manifests)
    gates = FeatureGates.parse(getattr(flags, "feature_gates", ""))
    return asyncio.run(live.read(access(flags), gates))


def read_snapshot_with(flags: argparse.Namespace, file: Path | None) -> Snapshot:
    """Read the selected cluster, and what a file of a pod has beside the pod."""
    from kubesched.snapshot import manifests  # noqa: PLC0415

    snapshot = read_snapshot(flags)
    if file is not None:
        manifests.add_beside_pods(snapshot, file, namespace=namespace_of(flags))
    return snapshot


def access(flags: argparse.Namespace) -> ClusterAccess:
    """Return address and credentials of the kubeconfig's cluster."""
    from kubesched.client import kubeconfig  # noqa: PLC0415
    from kubesched.client.kubeconfig_user import Impersonated  # noqa: PLC0415

    return kubeconfig.load(
        flags.kubeconfig,
        context=flags.context,
        master=flags.server,
        impersonated=Impersonated(flags.as_user, tuple(flags.as_group)),
    )


def namespace_of(flags: argparse.Namespace) -> str:
    """Return the namespace for names without one."""
    if flags.namespace:
        return str(flags.namespace)
    if flags.snapshot or flags.manifests:
        return "default"
    return access(flags).namespace


def read_gates(flags: argparse.Namespace) -> FeatureGates:
    """Return the feature gates; raises ConfigError for those that cannot be set."""
    from kubesched.config.features import FeatureGates  # noqa: PLC0415

    return FeatureGates.parse(flags.feature_gates)


def read_registry(flags: argparse.Namespace) -> Registry:
    """Return all plugins: in the tree, in files given by flags, in packages.

    Raises ConfigError if a file cannot be used.
    """
    from kubesched.cli.found_plugins import found_plugins  # noqa: PLC0415

    return found_plugins(tuple(flags.plugin))


def read_configuration(
    path: Path | None, gates: FeatureGates, registry: Registry | None = None
) -> SchedulerConfiguration:
    """Read a configuration, or return the default one; raises ConfigError if it cannot be used."""
    from kubesched.config import loading  # noqa: PLC0415
    from kubesched.config.types import SchedulerConfiguration  # noqa: PLC0415
    from kubesched.plugin_loading import check_arguments  # noqa: PLC0415

    if path is None:
        return SchedulerConfiguration.default(gates)
    config = loading.load(path, gates=gates)
    if registry is not None:
        check_arguments(config.profiles, registry)
    return config


def check_configuration(text: str, source: str, gates: FeatureGates, registry: Registry) -> None:
    """Raise ConfigError if the text of a configuration cannot be used."""
    from kubesched.cluster.cluster import Cluster  # noqa: PLC0415
    from kubesched.config import loading  # noqa: PLC0415
    from kubesched.plugin_loading import check_arguments  # noqa: PLC0415
    from kubesched.scheduler.dry_run import DryRun  # noqa: PLC0415

    config = loading.decode(text, source, gates=gates)
    try:
        check_arguments(config.profiles, registry)
        # Plugins validate the rest of their arguments when they are created.
        DryRun(Cluster(), config, gates, registry=registry)
    except ConfigError as refused:
        raise ConfigError(f"{source}: {refused}") from None
