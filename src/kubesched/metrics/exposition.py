"""The Prometheus text format, version 0.0.4, with Go's number formatting.

``prometheus_client`` could write it as well, but at ten times the cost, in the event loop, at every
scrape; it would also rename a counter ``x`` to ``x_total``, and a bucket ``1`` to ``1.0``. Its
parser reads our text in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from kubesched.metrics.spec import FamilySpec

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

#: From here on Go writes an exponent.
_EXPONENT_FROM: Final = 1e6
_LABEL_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


def header(spec: FamilySpec) -> str:
    """Format the header of a family."""
    text = spec.help.translate(_HELP_ESCAPES)
    return f"# HELP {spec.name} {text}\n# TYPE {spec.name} {spec.kind.value}\n"


def label_text(labels: Iterable[tuple[str, str]]) -> str:
    """Format labels with their values, without braces."""
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in labels])


def number_text(value: float) -> str:
    """Format a value."""
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number) if math.isfinite(number) else _not_finite(number)


def bound_text(bound: float) -> str:
    """Format the bound of a bucket exactly as Go does: it is a label value."""
    if not math.isfinite(bound):
        return _not_finite(bound)
    text = repr(float(bound)).removesuffix(".0")
    if abs(bound) < _EXPONENT_FROM or "e" in text:
        return text
    whole, _, fraction = text.removeprefix("-").partition(".")
    digits = (whole + fraction).rstrip("0")
    mantissa = f"{digits[0]}.{digits[1:]}".removesuffix(".")
    return f"{'-' if bound < 0 else ''}{mantissa}e+{len(whole) - 1:02d}"


def _escaped(value: str) -> str:
    # Few values need escaping, and checking is cheaper than translating.
    if '"' in value or "\\" in value or "\n" in value:
        return value.translate(_LABEL_ESCAPES)
    return value


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "+Inf" if number > 0 else "-Inf"
