"""``kubesched config``: configurations of older schedulers as v1, and what sets two apart."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kubesched import output_file
from kubesched.cli import cluster_source
from kubesched.cli.explain import encoded
from kubesched.cli.parsing import Parser
from kubesched.errors import ConfigError, KubeschedError, UsageError

if TYPE_CHECKING:
    from kubesched.config.legacy.converting import Conversion
    from kubesched.config.legacy.plugin_sets import Today
    from kubesched.config.types import SchedulerConfiguration

STDIN: Final = "-"
#: As ``diff`` does it.
_DIFFERENT: Final = 1
_TROUBLE: Final = 2

_EXAMPLES = """\
examples:
  kubesched config convert policy.cfg -o scheduler.yaml         a Policy, or a ConfigMap with one
  kubesched config convert old.yaml -o scheduler.yaml           v1alpha1 … v1beta3
  kubesched config convert --algorithm-provider=ClusterAutoscalerProvider
  kubesched config diff old.yaml scheduler.yaml                 what they do differently
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command and its own commands to a parser's."""
    parser = commands.add_parser(
        "config",
        help="convert old scheduler configurations, compare any two",
        description="Works on files alone, and needs no cluster.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(title="what", metavar="WHAT", required=True)
    _add_convert(kinds)
    _add_diff(kinds)


def _add_convert(kinds: argparse._SubParsersAction[Parser]) -> None:
    parser = kinds.add_parser(
        "convert",
        help="make KubeSchedulerConfiguration v1 of an older configuration",
        description="Reads a legacy Policy (JSON, YAML, or a ConfigMap manifest with the key "
        "policy.cfg) or a KubeSchedulerConfiguration of v1alpha1, v1alpha2, v1beta1, v1beta2 or "
        "v1beta3, and writes v1 that means the same. A report says what became what, what is the "
        "default anyway, and what has no counterpart.",
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="the old configuration; - for standard input",
    )
    parser.add_argument(
        "--algorithm-provider",
        default="",
        metavar="NAME",
        help="what the flag of that name said: DefaultProvider or ClusterAutoscalerProvider",
    )
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="the Policy that algorithmSource names, if it is not where it says",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(output_file.STDOUT),
        metavar="FILE",
        help="where to (default: standard output)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="where the report goes (default: standard error)",
    )
    _add_scheduler(parser)
    parser.set_defaults(run=_convert)


def _add_diff(kinds: argparse._SubParsersAction[Parser]) -> None:
    parser = kinds.add_parser(
        "diff",
        help="tell what two configurations do differently",
        description="Compares two configurations after defaulting: profiles by name, plugins of "
        "each extension point with their weights, arguments, extenders and all other fields. "
        "Old configurations are converted first. Ends with 0 if they do the same, with 1 if not, "
        "and with 2 if one of them cannot be read.",
    )
    parser.failure_code = _TROUBLE
    parser.add_argument("a", type=Path, metavar="A", help="a configuration")
    parser.add_argument("b", type=Path, metavar="B", help="another one; - for standard input")
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")
    _add_scheduler(parser)
    parser.set_defaults(run=_diff)


def _add_scheduler(parser: Parser) -> None:
    parser.add_argument(
        "--feature-gates", default="", metavar="A=true,…", help="the scheduler's feature gates"
    )
    cluster_source.add_plugins(parser)


def _convert(flags: argparse.Namespace) -> int:
    if flags.file is None and not flags.algorithm_provider:
        raise UsageError("what is to be converted? Name a FILE, or --algorithm-provider")
    converted = _converted(flags, _today(flags))
    _write(converted.text, flags.output)
    report = converted.report.text()
    if flags.report is None:
        sys.stderr.write(report)
    else:
        _write(report, flags.report)
    return 0


def _converted(flags: argparse.Namespace, today: Today) -> Conversion:
    from kubesched.config.legacy import converting  # noqa: PLC0415 (costs time to import)

    named: list[str] = []

    def read_policy(path: str) -> str:
        named.append(path)
        return _read_policy(flags.policy, path)

    if flags.file is None:
        converted = converting.convert_provider(flags.algorithm_provider, today)
    else:
        converted = converting.convert(
            _read(flags.file),
            str(flags.file),
            today,
            provider=flags.algorithm_provider,
            read_policy=read_policy,
        )
    if flags.policy and not named:
        raise UsageError(
            f"--policy={flags.policy} is for an algorithmSource that names a policy; "
            "to convert a Policy, name it as FILE"
        )
    return converted


def _diff(flags: argparse.Namespace) -> int:
    from kubesched.config import comparing  # noqa: PLC0415 (costs time to import)

    try:
        today = _today(flags)
        a, b = (_loaded(path, today) for path in (flags.a, flags.b))
        found = comparing.compare(a, b, today.points_of)
        if flags.output == "text":
            text = comparing.as_text(found, str(flags.a), str(flags.b))
        else:
            text = encoded(found, flags.output)
        _write(text, Path(output_file.STDOUT))
    except KubeschedError as refused:
        refused.exit_code = _TROUBLE
        raise
    return 0 if found.equal else _DIFFERENT


def _loaded(path: Path, today: Today) -> SchedulerConfiguration:
    from kubesched.config import loading  # noqa: PLC0415
    from kubesched.config.legacy.converting import convert  # noqa: PLC0415

    converted = convert(
        _read(path), str(path), today, read_policy=lambda named: _read_policy(None, named)
    )
    for lost in converted.report.lost:
        print(f"Note: {path}: no counterpart in v1: {lost}", file=sys.stderr)
    return loading.decode(converted.text, str(path), gates=today.gates)


def _today(flags: argparse.Namespace) -> Today:
    from kubesched.config.legacy.plugin_sets import Today  # noqa: PLC0415

    registry = cluster_source.read_registry(flags)
    return Today(cluster_source.read_gates(flags), registry.points_of)


def _read_policy(given: Path | None, named: str) -> str:
    """Read the policy that a configuration names, from where the flag says it is."""
    if not given and not named:
        raise ConfigError("algorithmSource.policy is a ConfigMap: save it, and name it by --policy")
    try:
        return _read(given or Path(named))
    except ConfigError as missing:
        hint = "" if given else "; algorithmSource names it: --policy tells where it is now"
        raise ConfigError(f"{missing}{hint}") from None


def _read(path: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(path) == STDIN else path.read_bytes()
        return data.decode()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: invalid UTF-8 at byte {error.start}") from None


def _write(text: str, path: Path) -> None:
    with output_file.writing(path) as file:
        file.write(text.encode())
