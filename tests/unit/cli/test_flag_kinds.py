"""Kinds of flags: how values are read and shown. Texts of errors are kube-scheduler's."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.cli import flag_kinds as kinds
from kubesched.cli.flag_kinds import FlagKind, VersionFlag
from kubesched.config.durations import Duration
from kubesched.errors import UsageError
from kubesched.logs import ModuleVerbosity
from kubesched.server.options import SniCertificate

QUANTITY = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


def read(kind: FlagKind, *texts: str) -> Any:
    value = None
    for text in texts:
        value = kind.read(text, value)
    return value


@pytest.mark.parametrize(
    ("kind", "texts", "value", "shown"),
    [
        (kinds.STRING, ["a", "b"], "b", "b"),
        (kinds.INT, ["-12"], -12, "-12"),
        (kinds.INT, ["0x1F"], 31, "31"),
        (kinds.INT, ["017"], 15, "15"),
        (kinds.INT, ["0o17"], 15, "15"),
        (kinds.INT, ["0b1_0"], 2, "2"),
        (kinds.INT, ["1_000"], 1000, "1000"),
        (kinds.INT32, ["2147483647"], 2**31 - 1, "2147483647"),
        (kinds.INT32, ["-2147483648"], -(2**31), "-2147483648"),
        (kinds.OPTIONAL_INT, ["7"], 7, "7"),
        (kinds.FLOAT, ["0.25"], 0.25, "0.25"),
        (kinds.FLOAT, ["1e300"], 1e300, "1e+300"),
        (kinds.FLOAT32, ["50"], 50.0, "50"),
        (kinds.FLOAT32, ["1234567"], 1234567.0, "1.234567e+06"),
        (kinds.FLOAT32, ["0x1p-2"], 0.25, "0.25"),
        (kinds.DURATION, ["90s"], Duration.of_seconds(90), "1m30s"),
        (kinds.DURATION, ["0"], Duration(), "0s"),
        (kinds.STRINGS, ["a,b", "c"], ("a", "b", "c"), "[a,b,c]"),
        (kinds.STRINGS, ['"a,b"," c"'], ("a,b", " c"), '["a,b"," c"]'),
        (kinds.STRINGS, [""], (), "[]"),
        (kinds.INT32S, ["23,0x18", "29"], (23, 24, 29), "[23,24,29]"),
        (kinds.MAPPING, ["m,l=a,b"], {"m,l": "a,b"}, '["m,l=a,b"]'),
        (kinds.MAPPING, ['"b=1,2","a=3"', "c=4"], {"b": "1,2", "a": "3", "c": "4"}, None),
        (kinds.MAPPING, ["a=1", "a=2"], {"a": "2"}, "[a=2]"),
        (kinds.ADDRESS, ["127.0.0.1"], "127.0.0.1", "127.0.0.1"),
        (kinds.ADDRESS, [" ::1 "], "::1", "::1"),
        (kinds.ADDRESS, ["::ffff:10.0.0.1"], "10.0.0.1", "10.0.0.1"),
        (kinds.ADDRESS, ["2001:DB8:0::1"], "2001:db8::1", "2001:db8::1"),
        (kinds.ADDRESS, [""], kinds.ALL_INTERFACES, kinds.ALL_INTERFACES),
        (kinds.ADDRESS, ["::1", ""], "::1", "::1"),
        (kinds.QUANTITY, ["64Ki"], "64Ki", "64Ki"),
        (kinds.LEVEL, ["10"], 10, "10"),
        (
            kinds.MODULES,
            ["a=1,,b*=2", "c=0"],
            (ModuleVerbosity("a", 1), ModuleVerbosity("b*", 2), ModuleVerbosity("c", 0)),
            "a=1,b*=2,c=0",
        ),
        (
            kinds.CERTIFICATES,
            ["a,b", "c,d:*.x, y"],
            (SniCertificate("a", "b"), SniCertificate("c", "d", ("*.x", "y"))),
            "[a,b;c,d:*.x,y]",
        ),
        (
            kinds.GATES,
            ["B=true,kube:A=false", " C = true "],
            (("", "B=true"), ("kube", "A=false"), ("", "C = true")),
            ":B=true,:C = true,kube:A=false",
        ),
        (kinds.VERSION, ["true"], VersionFlag("true"), "true"),
        (kinds.VERSION, ["raw"], VersionFlag("raw"), "raw"),
        (kinds.VERSION, ["v1.37.1-x", "1"], VersionFlag("true", "v1.37.1-x"), "true"),
    ],
)
def test_values(kind: FlagKind, texts: list[str], value: object, shown: str | None) -> None:
    got = read(kind, *texts)

    assert got == value
    assert shown is None or kind.show(got) == shown


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (kinds.BOOL, "yes", 'strconv.ParseBool: parsing "yes": invalid syntax'),
        (kinds.INT, "", 'strconv.ParseInt: parsing "": invalid syntax'),
        (kinds.INT, "08", 'strconv.ParseInt: parsing "08": invalid syntax'),
        (kinds.INT, " 1", 'strconv.ParseInt: parsing " 1": invalid syntax'),
        (kinds.INT, "1__0", 'strconv.ParseInt: parsing "1__0": invalid syntax'),
        (kinds.INT32, "2147483648", 'strconv.ParseInt: parsing "2147483648": value out of range'),
        (kinds.FLOAT32, "1e39", 'strconv.ParseFloat: parsing "1e39": value out of range'),
        (kinds.FLOAT, "1e400", 'strconv.ParseFloat: parsing "1e400": value out of range'),
        (kinds.FLOAT, "0x1", 'strconv.ParseFloat: parsing "0x1": invalid syntax'),
        (kinds.FLOAT, "1 ", 'strconv.ParseFloat: parsing "1 ": invalid syntax'),
        (kinds.DURATION, "5", 'time: missing unit in duration "5"'),
        (kinds.STRINGS, 'a"b', 'parse error on line 1, column 2: bare " in non-quoted-field'),
        (
            kinds.STRINGS,
            '"a"b',
            'parse error on line 1, column 3: extraneous or missing " in quoted-field',
        ),
        (kinds.INT32S, "1,", 'strconv.ParseInt: parsing "": invalid syntax'),
        (kinds.MAPPING, "a", "a must be formatted as key=value"),
        (kinds.MAPPING, "a=1,b=2,c", "c must be formatted as key=value"),
        (kinds.ADDRESS, "1.2.3", 'failed to parse IP: "1.2.3"'),
        (kinds.ADDRESS, "fe80::1%lo", 'failed to parse IP: "fe80::1%lo"'),
        (kinds.QUANTITY, "3x", f"quantities must match the regular expression '{QUANTITY}'"),
        (kinds.LEVEL, "2147483648", 'strconv.ParseUint: parsing "2147483648": value out of range'),
        (kinds.LEVEL, "٣", 'strconv.ParseUint: parsing "٣": invalid syntax'),
        (kinds.MODULES, "a", '"a" does not have the pattern=N format'),
        (
            kinds.MODULES,
            "a=x",
            'parsing verbosity in "a=x": strconv.ParseUint: parsing "x": invalid syntax',
        ),
        (kinds.CERTIFICATES, "a", "expected comma separated certificate and key file paths"),
        (kinds.CERTIFICATES, "a,b: ", "empty names list is not allowed"),
        (kinds.VERSION, "maybe", 'strconv.ParseBool: parsing "maybe": invalid syntax'),
        (
            kinds.VERSION,
            "v1.35.0",
            'version "v1.35.0" must match major/minor/patch of default version "v1.37.1"',
        ),
    ],
)
def test_texts_that_cannot_be_read(kind: FlagKind, text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(kind, text)

    assert str(refused.value) == said
