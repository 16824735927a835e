"""Canonical quantities, as the API server returns them: rounded up to thousandths.

``1000m`` is stored as ``1``, ``1024Mi`` as ``1Gi``, ``0.5`` as ``500m``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from kubesched.api import quantity

JsonObject = dict[str, Any]

_NANO_PER_MILLI: Final = 10**6
_DECIMAL: Final = {-1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P", 6: "E"}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT: Final = re.compile(r"[0-9.][eE][+-]?[0-9]+$")
#: Larger amounts keep their spelling: no resource is that large.
_LARGEST_MILLI: Final = (2**63 - 1) * 1000


@lru_cache(maxsize=16384, typed=True)
def canonical(text: str | float) -> str:
    """Return the canonical form; raises QuantityError if it is malformed."""
    milli = -(-quantity.nano(text) // _NANO_PER_MILLI)
    spelled = str(text).strip()
    if abs(milli) > _LARGEST_MILLI:
        return spelled
    if spelled.endswith("i") and milli % 1000 == 0 and abs(milli) >= 1024 * 1000:
        return _binary(milli // 1000)
    digits, power = _reduced(milli)
    if _EXPONENT.search(spelled) and power != 0:
        exponential = f"{digits}e{3 * power}"
        return spelled if spelled.lower() == exponential else exponential
    return f"{digits}{_DECIMAL[power]}"


def _binary(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < len(_BINARY) - 1:
        value //= 1024
        power += 1
    return f"{value}{_BINARY[power]}"


def _reduced(milli: int) -> tuple[int, int]:
    """Return (digits, power) so that the amount is digits x 1000^power, in thousands or larger."""
    if milli == 0:
        return 0, 0
    power = -1
    while milli % 1000 == 0 and power < max(_DECIMAL):
        milli //= 1000
        power += 1
    return milli, power


def canonical_amounts(holder: JsonObject, *names: str) -> None:
    """Make the amounts in maps of resources canonical; ``holder`` is modified, the maps are not."""
    for name in names:
        amounts = holder.get(name)
        if isinstance(amounts, dict):
            spelled = {resource: canonical(text) for resource, text in amounts.items()}
            if spelled != amounts:
                holder[name] = spelled
