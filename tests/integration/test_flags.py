"""Command lines: what kube-scheduler makes of them, and what kubesched does.

Both are run with the same flags, as far as they get without an API server.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from .command_lines import Both, side_by_side

OWN_GROUP = "Kubesched"
OWN_FLAGS = {
    "check-before-binding",
    "plugin",
    "queue-check-budget",
    "record",
    "record-files",
    "record-max-size",
    "record-redact",
    "seed",
    "tracing-config-file",
    "web-ui",
}


@pytest.fixture
def both(
    assets: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Both]:
    """Both commands; ours does not get as far as to schedule."""
    with side_by_side(assets / "kube-scheduler", tmp_path, capsys, monkeypatch) as commands:
        yield commands


# --- help -------------------------------------------------------------------------------------

_SECTION = re.compile(r"^(?P<title>\S.*) flags:$", re.MULTILINE)
_FLAG = re.compile(r"^  (?P<short>-\w,|   ) --(?P<name>[\w-]+)(?: (?P<kind>\S+))?  +(?P<text>.*)$")
_DEFAULT = re.compile(r"\(default (?P<default>.*)\)$")


def described(text: str) -> dict[str, dict[str, tuple[str, str, str]]]:
    """Read a help text: section to flag to its letter, kind and default."""
    sections: dict[str, dict[str, tuple[str, str, str]]] = {}
    flags: dict[str, tuple[str, str, str]] = {}
    for line in text.splitlines():
        if section := _SECTION.match(line):
            flags = sections[section["title"]] = {}
        elif flag := _FLAG.match(line):
            default = _DEFAULT.search(flag["text"])
            shown = default["default"] if default else ""
            flags[flag["name"]] = (flag["short"].strip(), flag["kind"] or "", shown)
    return sections


def test_help_has_the_same_flags_in_the_same_groups(both: Both) -> None:
    theirs, ours = both.real("--help"), both.ours("--help")
    described_by_us = described(ours.out)
    own = described_by_us.pop(OWN_GROUP)

    assert described_by_us == described(theirs.out)
    assert sum(map(len, described_by_us.values())) > 60
    assert set(own) == OWN_FLAGS
    assert (ours.code, ours.err) == (theirs.code, theirs.err)


def test_help_has_the_same_feature_gates(both: Both) -> None:
    gates = re.compile(r"kube:\w+=true\|false \(.*\)")

    assert gates.findall(both.ours("--help").out) == gates.findall(both.real("--help").out)


@pytest.mark.parametrize(
    "flags", [["--help"], ["-h"], ["--help", "stray"], ["--help=true", "--secure-port=99999"]]
)
def test_help_comes_before_anything_else(both: Both, flags: list[str]) -> None:
    assert both.real(*flags).out.startswith(both.real("--help").out)
    assert both.ours(*flags).out == both.ours("--help").out


# --- version ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [
        ["--version"],
        ["--version=true"],
        ["--version", "--config=absent"],
        ["--version", "--logging-format=absent"],
        ["--version=v1.37.1-mine", "--version"],
        ["--version=v1.37.1-mine", "--version=v1.37.1+yours", "--version"],
    ],
    ids=" ".join,
)
def test_version(both: Both, flags: list[str]) -> None:
    ours, theirs = both.ours(*flags), both.real(*flags)

    assert ours == theirs


def test_raw_version_has_the_same_parts(both: Both) -> None:
    parts = re.compile(r"(\w+):\"")
    theirs = both.real("--version=raw").out
    ours = both.ours("--version=raw").out

    assert parts.findall(ours) == parts.findall(theirs)
    for part in ("Major", "Minor", "GitVersion", "Platform"):
        pattern = rf'\b{part}:"[^"]*"'
        assert re.findall(pattern, ours) == re.findall(pattern, theirs)


# --- flags that cannot be read ----------------------------------------------------------------

UNREADABLE = [
    ["--foo"],
    ["--foo=1"],
    ["--Config=x"],
    ["--conf=x"],
    ["--=x"],
    ["---x"],
    ["-x"],
    ["-'"],
    ["-config=x"],
    ["-v"],
    ["-v="],
    ["-v=x"],
    ["-v", "-1"],
    ["-v=2147483648"],
    ["-vh"],
    ["--v"],
    ["--v="],
    ["--v=1.5"],
    ["--v=+1"],
    ["--v=1_0"],
    ["--config"],
    ["--leader_elect=maybe"],
    ["--leader-elect="],
    ["--leader-elect=yes"],
    ["--version=maybe"],
    ["--version=v9.9.9"],
    ["--version=v1.37"],
    ["--version=v1.37.1-01"],
    ["--version=v1.37.1-a_b"],
    ["--version=vx"],
    ["--help=2"],
    ["--kube-api-burst=many"],
    ["--kube-api-burst=1.5"],
    ["--kube-api-burst=2147483648"],
    ["--kube-api-burst= 1"],
    ["--kube-api-burst=08"],
    ["--kube-api-burst=1__0"],
    ["--kube-api-burst=0x"],
    ["--kube-api-qps=fast"],
    ["--kube-api-qps="],
    ["--kube-api-qps=1e50"],
    ["--kube-api-qps=1__0"],
    ["--kube-api-qps=0x1"],
    ["--secure-port=http"],
    ["--secure-port=9223372036854775808"],
    ["--bind-address=x"],
    ["--bind-address=1.2.3"],
    ["--bind-address=01.2.3.4"],
    ["--bind-address=fe80::1%eth0"],
    ["--pod-max-in-unschedulable-pods-duration=5"],
    ["--pod-max-in-unschedulable-pods-duration=soon"],
    ["--pod-max-in-unschedulable-pods-duration="],
    ["--pod-max-in-unschedulable-pods-duration=1y"],
    ["--tls-curve-preferences=a"],
    ["--tls-curve-preferences="],
    ["--tls-curve-preferences=1,"],
    ["--tls-sni-cert-key=a"],
    ["--tls-sni-cert-key=a,b,c"],
    ["--tls-sni-cert-key=a,b:"],
    ["--tls-cipher-suites=a\"b"],
    ["--tls-cipher-suites=\"a"],
    ["--tls-cipher-suites=\"a\"b"],
    ["--allow-metric-labels=foo"],
    ["--allow-metric-labels="],
    ["--allow-metric-labels=a=b,c=d,e"],
    ["--log-text-info-buffer-size=3x"],
    ["--log-text-info-buffer-size="],
    ["--log-text-info-buffer-size=1.0.0z"],
    ["--log-flush-frequency=1"],
    ["--vmodule=foo"],
    ["--vmodule=foo="],
    ["--vmodule==1"],
    ["--vmodule=foo=x"],
    ["--vmodule=foo=1=2"],
    ["--vmodule=foo=-1"],
]  # fmt: skip


@pytest.mark.parametrize("flags", UNREADABLE, ids=" ".join)
def test_flags_that_cannot_be_read(both: Both, flags: list[str]) -> None:
    assert both.our_complaint(*flags) == both.real_complaint(*flags)


def test_what_cannot_be_read_comes_with_a_hint(both: Both) -> None:
    ours, theirs = both.ours("--foo"), both.real("--foo")
    usage = theirs.err.partition("\n\n")[0]

    assert usage == "Usage:\n  kube-scheduler [flags]"
    assert ours.err == (
        f"{usage}\n\nSee 'kube-scheduler --help' for its flags.\n\nError: unknown flag: --foo\n"
    )


@pytest.mark.parametrize(
    "flags",
    [["stray"], ["a", "b"], ["-"], ["--leader-elect", "false"], ["--", "--v=1"], ['say "x"', "ü"]],
    ids=" ".join,
)
def test_what_is_no_flag(both: Both, flags: list[str]) -> None:
    theirs, ours = both.real(*flags), both.ours(*flags)

    assert (ours.code, ours.out, ours.err) == (theirs.code, theirs.out, theirs.err)


# --- flags that must not say what they say ----------------------------------------------------

REFUSED = [
    ["--secure-port=70000"],
    ["--secure-port=-1"],
    ["--secure-port=-1", "--show-hidden-metrics-for-version=1.35"],
    ["--logging-format=xml"],
    ["--logging-format="],
    ["--logging-format=json", "--vmodule=a=1"],
    ["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"],
    ["--log-flush-frequency=0s"],
    ["--log-flush-frequency=-1s", "--logging-format=x", "--log-json-split-stream"],
    ["--log-text-split-stream"],
    ["--log-json-split-stream"],
    ["--log-text-info-buffer-size=3"],
    ["--log-json-info-buffer-size=1Ki"],
    ["--log-json-info-buffer-size=1Ki", "--log-text-split-stream=true"],
    ["--requestheader-username-headers= "],
    ["--requestheader-group-headers=a,,b"],
    ["--requestheader-extra-headers-prefix= "],
    ["--requestheader-allowed-names= ,x"],
    ["--requestheader-uid-headers=x"],
    ["--requestheader-uid-headers=X-Remote-Uid, "],
    ["--requestheader-uid-headers=x-remote-uid", "--feature-gates=RemoteRequestHeaderUID=false"],
    ["--disabled-metrics=a-b,c"],
    ["--disabled-metrics=,a"],
    ["--show-hidden-metrics-for-version=1.37"],
    ["--show-hidden-metrics-for-version=x"],
    ["--allow-metric-labels=foo=a"],
    ["--allow-metric-labels=a,b=<&>", "--allow-metric-labels=x=y"],
    ["--allow-metric-labels=a,b=c", "--allow-metric-labels-manifest=labels.yaml"],
    ["--allow-metric-labels-manifest=absent.yaml"],
    ["--allow-metric-labels-manifest=wrong-labels.yaml"],
    ["--emulated-version=1.33"],
    ["--emulated-version=1.38"],
    ["--emulated-version=1.37,1.36"],
    ["--emulated-version=kube=1.36", "--emulated-version=kube=1.35"],
    ["--emulated-version=foo=1.35"],
    ["--emulated-version=1.35.1"],
    ["--emulated-version=x"],
    ["--emulated-version=1"],
    ["--emulated-version=01.35"],
    ["--emulated-version=1.33", "--secure-port=-1"],
    ["--min-compatibility-version=1.38"],
    ["--min-compatibility-version=1.33"],
    ["--min-compatibility-version=1.37", "--emulated-version=1.36"],
    ["--min-compatibility-version=x"],
    ["--emulated-version=1.34", "--min-compatibility-version=1.35"],
    ["--feature-gates=Foo=true"],
    ["--feature-gates=Foo"],
    ["--feature-gates=NodeDeclaredFeatures=maybe"],
    ["--feature-gates=NodeDeclaredFeatures=false"],
    ["--feature-gates=SchedulerQueueingHints=true"],
    ["--feature-gates=foo:A=true"],
    ["--feature-gates=kube:LoggingAlphaOptions=true,AllBeta=true"],
    ["--feature-gates=GangScheduling=true"],
    ["--feature-gates=GenericWorkload=true", "--emulated-version=1.30"],
    ["--feature-gates=NodeDeclaredFeatures=true", "--emulated-version=1.34"],
    ["--feature-gates=CompositePodGroup=true"],
    ["--feature-gates=Foo=true", "--logging-format=xml"],
    ["--feature-gates=Foo=true", "--version"],
    ["--logging-format=xml", "--secure-port=-1"],
    ["--secure-port=-1", "--config=absent"],
    ["--config=absent"],
    ["--config=."],
]  # fmt: skip


@pytest.mark.parametrize("flags", REFUSED, ids=" ".join)
def test_flags_that_are_refused(both: Both, tmp_path: Path, flags: list[str]) -> None:
    (tmp_path / "labels.yaml").write_text('"a,b": "c"\n')
    (tmp_path / "wrong-labels.yaml").write_text('"a": "c"\n')

    assert both.our_complaint(*flags) == both.real_complaint(*flags)


#: what only shows once the API server is known and a port is opened
REFUSED_LATE = [
    ["--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA,foo"],
    ["--tls-min-version=VersionTLS14"],
    ["--tls-curve-preferences=1"],
    ["--tls-curve-preferences=23,23"],
    ["--tls-curve-preferences=0"],
    ["--tls-curve-preferences=70000"],
    ["--authorization-always-allow-paths=/ok*,/a*b"],
    ["--tls-min-version=x", "--tls-cipher-suites=foo"],
    ["--leader-elect-resource-lock=endpoints"],
    ["--leader-elect-resource-lock=configmapsleases"],
    ["--leader-elect-resource-lock=pods"],
    ["--write-config-to=absent/file"],
]


@pytest.mark.parametrize("flags", REFUSED_LATE, ids=" ".join)
def test_flags_that_are_refused_late(both: Both, flags: list[str], free_port: int) -> None:
    rest = [
        "--kubeconfig=kubeconfig.yaml",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port}",
    ]

    assert both.our_complaint(*flags, *rest) == both.real_complaint(*flags, *rest)


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- values -----------------------------------------------------------------------------------

RIGHT = [
    [],
    ["--leader-elect=0", "--leader_elect_resource_name", "a b", "--v", "1"],
    ["--leader-elect", "--leader-elect=False", "--profiling=F", "--contention-profiling=t"],
    ["-v3", "-v", "2", "-v=1"],
    ["--kube-api-qps=1234567", "--kube-api-burst=0x10"],
    ["--kube-api-qps=0.1", "--kube-api-burst=-0b11"],
    ["--kube-api-qps=1e-7", "--kube-api-burst=017"],
    ["--kube-api-qps=123456.7", "--kube-api-burst=1_000"],
    ["--kube-api-qps=16777217", "--kube-api-burst=+5"],
    ["--kube-api-qps=inf"],
    ["--kube-api-qps=1_0.2_5e1_0"],
    ["--kube-api-qps=-Infinity"],
    ["--kube-api-qps=nan"],
    ["--kube-api-qps=0x1p4"],
    ["--kube-api-qps=.5", "--http2-max-streams-per-connection=250"],
    ["--bind-address="],
    ["--bind-address=::"],
    ["--bind-address= 127.0.0.1 "],
    ["--bind-address=::ffff:127.0.0.1"],
    ["--bind-address=2001:0DB8::0001"],
    ["--pod-max-in-unschedulable-pods-duration=90s", "--log-flush-frequency=1h0.5s"],
    ["--authentication-token-webhook-cache-ttl=0", "--leader-elect-retry-period=1500ms"],
    ["--tls-cipher-suites=a,b", "--tls-cipher-suites=c", "--disabled-metrics="],
    ['--requestheader-allowed-names="a,b"," c",d"'.rstrip('"'), "--requestheader-group-headers=x"],
    ["--requestheader-group-headers=X-Remote-Group", "--requestheader-group-headers=b"],
    ["--tls-curve-preferences=23,0x18", "--tls-curve-preferences=29"],
    ["--tls-sni-cert-key=a,b", "--tls-sni-cert-key= c , d : *.x.y , z "],
    ["--allow-metric-labels=a,b=c,d"],
    ['--allow-metric-labels="b,c=1,2","a,b=3"', "--allow-metric-labels=c,d=4"],
    ["--feature-gates=NodeDeclaredFeatures=true", "--feature-gates= GenericWorkload = false ,"],
    ["--feature-gates=kube:NodeDeclaredFeatures=true", "--emulated-version=1.36"],
    ["--vmodule=a=1,b*=2,", "--vmodule=c=0"],
    ["--min-compatibility-version=kube=1.34", "--emulated-version=kube=1.35"],
    ["--feature-gates=LoggingAlphaOptions=true", "--log-text-info-buffer-size=64Ki"],
    ["--version=v1.37.1-mine+x.1", "--master=http://a"],
    ["--logging-format", "text", "--cert-dir=/x", "--client-ca-file=é\u200b\t\"\\"],
]  # fmt: skip

_FLAG_LINE = re.compile(r'FLAG: --([\w-]+)=(".*")$', re.MULTILINE)


@pytest.mark.parametrize("flags", RIGHT, ids=lambda flags: " ".join(flags) or "none")
def test_values_of_flags(both: Both, flags: list[str]) -> None:
    """Both log the values of all flags, and are then ended by a configuration that is not there."""
    rest = ["--v=1", "--config=absent"]
    theirs = dict(_FLAG_LINE.findall(both.real(*flags, *rest).err))
    ours = dict(_FLAG_LINE.findall(both.ours(*flags, *rest).err))

    assert {name: ours.get(name) for name in theirs} == theirs
    assert set(ours) - set(theirs) == OWN_FLAGS
    assert list(ours) == sorted(ours)


# --- logs -------------------------------------------------------------------------------------

_TEXT_LINE = re.compile(r"^(\w)\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.\w+:\d+\] ", re.MULTILINE)


def written_line(err: str) -> str:
    (line,) = (each for each in err.splitlines() if "Wrote configuration" in each)
    return line


def test_a_line_of_text(both: Both) -> None:
    flags = ["--kubeconfig=kubeconfig.yaml", "--secure-port=0", '--write-config-to=a "b" é.yaml']
    theirs, ours = (written_line(run(*flags).err) for run in (both.real, both.ours))

    assert _TEXT_LINE.sub(r"\1 ", ours) == _TEXT_LINE.sub(r"\1 ", theirs)
    assert len(_TEXT_LINE.match(ours)[0].split()) == 4  # type: ignore[index]


def test_a_line_of_json(both: Both) -> None:
    flags = ["--kubeconfig=kubeconfig.yaml", "--secure-port=0", '--write-config-to=a "b" é<&>.yaml']
    theirs, ours = (
        written_line(run(*flags, "--logging-format=json").err) for run in (both.real, both.ours)
    )
    number = r'"ts":\d{13}(\.\d+)?,"caller":"\w+/\w+\.\w+:\d+"'

    assert re.sub(number, "", ours) == re.sub(number, "", theirs)
    assert (
        list(json.loads(ours)) == list(json.loads(theirs)) == ["ts", "caller", "msg", "v", "file"]
    )


def test_a_block_of_several_lines(both: Both) -> None:
    """The configuration, which is logged with -v=2, has many lines."""
    flags = ["--kubeconfig=kubeconfig.yaml", "--secure-port=0", "--write-config-to=x.yaml", "-v=2"]
    block = re.compile(r'"Using component config" config=<\n(?:\t.*\n)+ >\n')
    theirs, ours = (block.findall(run(*flags).err) for run in (both.real, both.ours))

    assert ours == theirs
    assert len(ours) == 1


def test_a_failure_in_json(both: Both) -> None:
    flags = ["--logging-format=json", "--config=absent"]
    theirs, ours = (json.loads(run(*flags).err.splitlines()[-1]) for run in (both.real, both.ours))

    for said in (theirs, ours):
        del said["ts"], said["caller"]
    assert ours == theirs
    assert list(ours) == ["msg", "err"]


def test_split_streams(both: Both) -> None:
    flags = [
        "--feature-gates=LoggingAlphaOptions=true",
        "--log-text-split-stream",
        "--kubeconfig=kubeconfig.yaml",
        "--secure-port=0",
        "--write-config-to=x.yaml",
        "--requestheader-username-headers=x",
    ]
    theirs, ours = both.real(*flags), both.ours(*flags)

    for said in (theirs, ours):
        assert "Wrote configuration" in said.out
        assert "Wrote configuration" not in said.err
        assert "--requestheader-username-headers is set without" in said.err
        assert "--requestheader-username-headers is set without" not in said.out
