"""Amounts of resources as quantities that a manifest may hold, and people can read."""

from __future__ import annotations

from typing import Final

from kubesched.api import names

_KI, _MI, _GI, _TI = (1 << 10, 1 << 20, 1 << 30, 1 << 40)
_UNITS: Final = ((_TI, "Ti"), (_GI, "Gi"), (_MI, "Mi"), (_KI, "Ki"))
#: Below this many bytes, rounding to Mi would give up too much.
_ROUNDED_FROM: Final = 64 * _MI


def is_bytes(resource: str) -> bool:
    """Tell whether a resource is counted in bytes."""
    return resource in (names.MEMORY, names.EPHEMERAL_STORAGE) or resource.startswith(
        names.HUGEPAGES_PREFIX
    )


def quantity(resource: str, amount: int) -> str:
    """Return the shortest exact quantity for an amount, which for cpu is in thousandths."""
    if resource == names.CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if is_bytes(resource) and amount:
        for size, suffix in _UNITS:
            if amount % size == 0:
                return f"{amount // size}{suffix}"
    return str(amount)


def readable(resource: str, amount: int) -> str:
    """Return a quantity, and in brackets what it comes to if that is hard to see."""
    exact = quantity(resource, amount)
    if is_bytes(resource) and amount >= _GI and amount % _GI:
        return f"{exact} ({amount / _GI:.1f}Gi)"
    return exact


def rounded_down(resource: str, amount: int) -> int:
    """Return an amount that is hardly smaller and that people would write."""
    if resource in (names.MEMORY, names.EPHEMERAL_STORAGE) and amount >= _ROUNDED_FROM:
        return amount // _MI * _MI
    return amount


def compared(resource: str, *amounts: int) -> list[str]:
    """Return amounts as short quantities in which different ones still look different."""
    if not is_bytes(resource):
        return [quantity(resource, each) for each in amounts]
    for digits in (1, 3):
        texts = [_rounded(each, digits) for each in amounts]
        if len(set(texts)) == len(set(amounts)):
            return texts
    return [quantity(resource, each) for each in amounts]


def _rounded(amount: int, digits: int) -> str:
    for size, suffix in _UNITS:
        if abs(amount) >= size:
            return f"{amount / size:.{digits}f}".rstrip("0").rstrip(".") + suffix
    return str(amount)
