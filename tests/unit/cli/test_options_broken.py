"""Whatever the command line: it is understood, or refused with an error that says why."""

from __future__ import annotations

import contextlib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubesched.cli.flag_table import FLAGS
from kubesched.cli.options import complete_options, make_gates, refuse_arguments
from kubesched.errors import ConfigError, UsageError

#: What would read files, or write some, is left to other tests.
_NO_FILES = {
    "config",
    "write-config-to",
    "plugin",
    "record",
    "tracing-config-file",
    "allow-metric-labels-manifest",
}

NAMES = st.sampled_from([*sorted(FLAGS.flags.keys() - _NO_FILES), "h", "nonsense", ""])
VALUES = (
    st.sampled_from(
        ["", "true", "false", "0", "1", "-1", "65536", "4294967296", "1e999", "nan", "0x1F", "1_0",
         "10s", "-5s", "9999999999h", "1.5.5s", "a=b", "a,b=c", '"', '"a', "=", ",", ":", "[",
         "VersionTLS12", "kube:AllAlpha=true", "AllBeta=false", "1.36", "kube=1.35", "v1.36", "*",
         "/healthz,*", "cert,key:a,b", "10Mi", "-1Ki", "1e1000000", "::1", "leases", "json"]
    )
    | st.text(max_size=8)
    | st.integers().map(str)
)  # fmt: skip


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    """Some arguments: with one dash or two, with a value, without, or behind."""
    given_arguments = []
    for _ in range(draw(st.integers(0, 4))):
        dashes = draw(st.sampled_from(["--", "--", "--", "-", ""]))
        name = draw(NAMES)
        value = draw(VALUES)
        signature = draw(st.sampled_from(["joined", "apart", "alone"]))
        if signature == "joined":
            given_arguments.append(f"{dashes}{name}={value}")
        else:
            given_arguments.append(f"{dashes}{name}")
            if signature == "apart":
                given_arguments.append(value)
    return given_arguments


@settings(max_examples=400)
@given(arguments())
@example(["--feature-gates=" + "a" * 10_000])
@example(["--v=" + "9" * 5_000])
@example(["--kube-api-qps=" + "9" * 5_000])
@example(["--log-json-info-buffer-size=1e1000000"])
@example(["--tls-sni-cert-key=,:"])
@example(["--allow-metric-labels=" + '"' * 100])
def test_any_command_line(given_arguments: list[str]) -> None:
    with contextlib.suppress(ConfigError, UsageError):
        flags = FLAGS.parse(given_arguments)
        refuse_arguments(flags)
        complete_options(flags, make_gates(flags))
