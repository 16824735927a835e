"""The ``kube-scheduler`` command: parses the flags, reports errors, and schedules."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Final

from kubesched import __version__, garbage, logs, output_file
from kubesched.cli import flag_help, running
from kubesched.cli.flag_kinds import VersionFlag
from kubesched.cli.flag_table import FLAGS
from kubesched.cli.flags import ParsedFlags
from kubesched.cli.options import (
    COMMAND,
    CommandOptions,
    complete_options,
    make_gates,
    make_logging,
    read_configuration,
    refuse_arguments,
)
from kubesched.config import encoding
from kubesched.config.building import as_built
from kubesched.config.features import BINARY_VERSION
from kubesched.config.plugins import Unbuilt
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError, KubeschedError, OutputError, UsageError

_log = logs.get_logger(__name__)
_plain_log = logging.getLogger(__name__)

_ABOUT: Final = """\
Assigns pods to nodes: for each pending pod of a Kubernetes cluster, it filters and scores the nodes
and binds the pod to the best one. A drop-in replacement of kube-scheduler, written in Python.
See https://kubernetes.io/docs/concepts/scheduling-eviction/ about scheduling."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    try:
        flags = FLAGS.parse(sys.argv[1:] if arguments is None else arguments)
    except UsageError as wrong:
        usage = flag_help.usage_line(COMMAND)
        hint = f"{usage}\nSee '{COMMAND} --help' for its flags.\n"
        print(f"{hint}\nError: {wrong}", file=sys.stderr)
        return 1
    try:
        return _run(flags)
    except KubeschedError as refused:
        print(f"Error: {refused}", file=sys.stderr)
        return 1
    finally:
        logs.flush()


def _run(flags: ParsedFlags) -> int:
    if flags.get("help", bool):
        width = os.get_terminal_size().columns if sys.stdout.isatty() else 0
        _print(flag_help.help_text(FLAGS, command=COMMAND, about=_ABOUT, width=width))
        return 0
    refuse_arguments(flags)
    gates = make_gates(flags)
    version = flags.get("version", VersionFlag)
    if version.said in {"true", "raw"}:
        raw = version.said == "raw"
        _print(_raw(version.reported) if raw else f"Kubernetes {version.reported}\n")
        return 0
    how_to_log = make_logging(flags, gates)
    logs.configure(how_to_log)
    _log_flags(flags)
    try:
        options = complete_options(flags, gates)
        _log_notes(options)
        config = _as_built(options)
        if options.write_config_to or _log.enabled(2):
            text = encoding.to_yaml(config)
            _log.v(2, "Using component config", config=text)
            if options.write_config_to:
                _write(text, options.write_config_to)
                return 0
    except ConfigError as refused:
        if how_to_log.format != logs.JSON:
            raise
        # A consumer of JSON logs cannot parse anything else.
        _log.error("command failed", refused)
        return 1
    return running.run(lambda: _serve(options, lambda: read_configuration(flags, gates)))


async def _serve(options: CommandOptions, read_again: Callable[[], SchedulerConfiguration]) -> None:
    # Not loaded for --help and --version: NumPy, and all of the scheduler.
    with garbage.importing():
        from kubesched.cli.component import Component  # noqa: PLC0415

    _log.info(
        "Starting Kubernetes Scheduler", version=options.reported_version, kubesched=__version__
    )
    await Component(options, read_again).run()


def _log_flags(flags: ParsedFlags) -> None:
    if _log.enabled(1):
        for name, value in flags.texts().items():
            _plain_log.log(logs.verbose(1), "FLAG: --%s=%s", name, logs.quote(value))


def _log_notes(options: CommandOptions) -> None:
    """Log warnings about the flags."""
    for note in options.notes:
        if note.fields is None:
            _plain_log.warning(note.message)
        else:
            _log.info(note.message, **note.fields)


def _as_built(options: CommandOptions) -> SchedulerConfiguration:
    """Reject profiles that cannot be built, before anything is connected or written."""
    with garbage.importing():  # not loaded for --help: NumPy
        from kubesched.cli.found_plugins import found_plugins  # noqa: PLC0415
        from kubesched.plugin_loading import check_arguments  # noqa: PLC0415

    registry = found_plugins(options.plugin_files)
    config = as_built(options.config, registry.points_of, unbuilt=Unbuilt.LEAVE_OUT)
    check_arguments(config.profiles, registry)
    return config


def _print(text: str) -> None:
    """Print; if that fails, exit without a traceback."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as failed:
        output_file.discard_stdout()
        raise ConfigError(f"write to stdout: {(failed.strerror or '').lower()}") from None


def _write(text: str, path: str) -> None:
    try:
        with output_file.writing(path) as file:
            file.write(text.encode())
    except OutputError as failed:
        raise ConfigError(f"open {path}: {failed.reason.lower()}") from None
    _log.info("Wrote configuration", file=path)


def _raw(reported_version: str) -> str:
    """Format the parts of the version as kube-scheduler does, with Python's in place of Go's."""
    major, minor = BINARY_VERSION
    parts = {
        "Major": major,
        "Minor": minor,
        "EmulationMajor": "",
        "EmulationMinor": "",
        "MinCompatibilityMajor": "",
        "MinCompatibilityMinor": "",
        "GitVersion": reported_version,
        "GitCommit": f"kubesched-{__version__}",
        "GitTreeState": "",
        "BuildDate": "1970-01-01T00:00:00Z",
        "GoVersion": f"python{platform.python_version()}",
        "Compiler": platform.python_implementation().lower(),
        "Platform": f"{sys.platform}/{_ARCHITECTURES.get(platform.machine(), platform.machine())}",
    }
    shown = ", ".join(f"{name}:{logs.quote(str(value))}" for name, value in parts.items())
    return f"version.Info{{{shown}}}\n"


_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


if __name__ == "__main__":
    sys.exit(main())
