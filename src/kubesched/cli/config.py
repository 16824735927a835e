"""``kubesched config``: converts old configurations to v1, and compares configurations."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kubesched import output_file
from kubesched.cli import cluster_source, exit_codes
from kubesched.cli.parsing import Parser, add_output
from kubesched.cli.printing import encoded
from kubesched.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from kubesched.config.legacy.converting import Conversion
    from kubesched.config.legacy.plugin_sets import Today
    from kubesched.config.types import SchedulerConfiguration

STDIN: Final = "-"

_EXAMPLES = """\
examples:
  kubesched config convert policy.cfg -o scheduler.yaml         a Policy, or a ConfigMap with one
  kubesched config convert old.yaml -o scheduler.yaml           v1alpha1 … v1beta3
  kubesched config convert --algorithm-provider=ClusterAutoscalerProvider
  kubesched config diff old.yaml scheduler.yaml                 differences in behaviour
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command and its own commands to a parser's."""
    parser = commands.add_parser(
        "config",
        help="convert old scheduler configurations, compare any two",
        description="Works on files alone, and needs no cluster.",
        epilog=_EXAMPLES,
    )
    kinds = parser.add_subparsers(title="what", metavar="WHAT", required=True)
    _add_convert(kinds)
    _add_diff(kinds)


def _add_convert(kinds: argparse._SubParsersAction[Parser]) -> None:
    parser = kinds.add_parser(
        "convert",
        help="convert an older configuration to KubeSchedulerConfiguration v1",
        description="Reads a legacy Policy (JSON, YAML, or a ConfigMap manifest with the key "
        "policy.cfg) or a KubeSchedulerConfiguration of v1alpha1, v1alpha2, v1beta1, v1beta2 or "
        "v1beta3, and writes the equivalent v1. A report lists what each part was converted to, "
        "which parts are defaults today, and which have no counterpart.",
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
        help="the value of that flag: DefaultProvider or ClusterAutoscalerProvider",
    )
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="the Policy of algorithmSource, if it is not at the path that it names",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(output_file.STDOUT),
        metavar="FILE",
        help="file for the result (default: standard output)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="file for the report (default: standard error)",
    )
    _add_scheduler(parser)
    parser.set_defaults(run=_convert)


def _add_diff(kinds: argparse._SubParsersAction[Parser]) -> None:
    parser = kinds.add_parser(
        "diff",
        help="compare the behaviour of two configurations",
        description="Compares two configurations after defaulting: profiles by name, plugins of "
        "each extension point with their weights, arguments, extenders and all other fields. "
        "Old configurations are converted first. The exit code is 0 if they behave alike, 1 if "
        "not, and 2 if one of them cannot be read.",
    )
    parser.failure_code = exit_codes.TROUBLE
    parser.add_argument("a", type=Path, metavar="A", help="a configuration")
    parser.add_argument("b", type=Path, metavar="B", help="another one; - for standard input")
    add_output(parser, "text", "json", "yaml")
    _add_scheduler(parser)
    parser.set_defaults(run=_diff)


def _add_scheduler(parser: Parser) -> None:
    parser.add_argument(
        "--feature-gates", default="", metavar="A=true,…", help="the scheduler's feature gates"
    )
    cluster_source.add_plugins(parser)


def _convert(flags: argparse.Namespace) -> int:
    if flags.file is None and not flags.algorithm_provider:
        raise UsageError("nothing to convert: name a FILE, or --algorithm-provider")
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

    with exit_codes.answering():
        today = _today(flags)
        a, b = (_loaded(path, today) for path in (flags.a, flags.b))
        found = comparing.compare(a, b, today.points_of)
        if flags.output == "text":
            text = comparing.as_text(found, str(flags.a), str(flags.b))
        else:
            text = encoded(found, flags.output)
        _write(text, Path(output_file.STDOUT))
    return exit_codes.YES if found.equal else exit_codes.NO


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
