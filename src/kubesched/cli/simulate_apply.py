"""``kubesched simulate apply``: do the pods of a manifest fit?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.cli import cluster_source, exit_codes
from kubesched.cli.parsing import not_negative
from kubesched.cli.printing import node_names, show
from kubesched.cli.simulating import Kinds, add_kind, tell
from kubesched.errors import ObjectError

if TYPE_CHECKING:
    from kubesched.simulate.report import Applied
    from kubesched.simulate.wanted_pods import Replicas

_EXAMPLES = """\
examples:
  kubesched simulate apply -f web.yaml                  as many as the file says
  kubesched simulate apply -f web.yaml --replicas=50    if it had 50 replicas
  kubesched simulate apply -f web.yaml --replicas=+40   40 more than there are
  helm template shop | kubesched simulate apply -f -    everything that a chart makes
"""


def add_kind_of_simulation(kinds: Kinds) -> None:
    """Add the command."""
    parser = add_kind(
        kinds,
        "apply",
        "tell whether the pods of a manifest fit, and where",
        _apply,
        description="Tells whether the pods that a manifest asks for fit, where they go, which "
        "pods they preempt, and why others do not fit. A workload that is there already asks only "
        "for the pods that it lacks. The exit code is 0 if all fit, 1 if not, and 2 if there is no "
        "answer. Never writes to the cluster.",
        epilog=_EXAMPLES,
    )
    parser.failure_code = exit_codes.TROUBLE
    parser.add_argument(
        "-f",
        "--file",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="manifest of a pod or of a workload, or a folder; - for standard input; may be "
        "repeated",
    )
    parser.add_argument(
        "--replicas",
        type=_replicas,
        metavar="[+]N",
        help="how many pods it is to have, instead of what the file says; with + beside those "
        "that are there",
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", help="for objects that name none")


def _replicas(text: str) -> Replicas:
    from kubesched.simulate.wanted_pods import Replicas  # noqa: PLC0415 (costs time to import)

    return Replicas(not_negative(text.removeprefix("+")), more=text.startswith("+"))


def _apply(flags: argparse.Namespace) -> int:
    from kubesched.simulate import apply_table  # noqa: PLC0415 (costs time to import)

    with exit_codes.answering():
        said = _applied(flags)
        tell(said.notes)
        show(
            flags,
            said,
            lambda console, top, wide: apply_table.show_applied(console, said, top=top, wide=wide),
            node_names(said.placements.values()),
        )
    return exit_codes.YES if said.fits else exit_codes.NO


def _applied(flags: argparse.Namespace) -> Applied:
    from kubesched.simulate.applying import apply  # noqa: PLC0415
    from kubesched.simulate.playing import Conditions  # noqa: PLC0415
    from kubesched.simulate.wanted_pods import wanted_pods  # noqa: PLC0415
    from kubesched.snapshot import manifests  # noqa: PLC0415

    objects = manifests.objects_in(flags.file)
    gates = cluster_source.read_gates(flags)
    registry = cluster_source.read_registry(flags)
    config = cluster_source.read_configuration(flags.config, gates, registry)
    snapshot = cluster_source.read_snapshot(flags)
    wanted = wanted_pods(
        snapshot,
        objects,
        namespace=cluster_source.namespace_of(flags),
        replicas=flags.replicas,
    )
    if not wanted:
        raise ObjectError(manifests.no_pod_in(", ".join(map(str, flags.file))))
    conditions = Conditions(
        snapshot=snapshot, config=config, gates=gates, registry=registry, seed=flags.seed
    )
    return apply(conditions, wanted)
