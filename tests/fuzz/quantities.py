"""Resource quantities: three readers of one notation."""

from __future__ import annotations

from kubesched.api import quantity
from kubesched.cel.library import quantities as cel_quantities
from kubesched.cel.values import Err
from kubesched.embedded.quantities import canonical
from kubesched.errors import QuantityError

from .target import FuzzTarget, refused_with, text_of

_NANO_PER_MILLI = 10**6


def read(data: bytes) -> None:
    """A quantity is a number or a QuantityError; its canonical form means the same."""
    text = text_of(data)
    for reader in (quantity.value, quantity.milli_value, quantity.capacity, quantity.nano):
        with refused_with(QuantityError):
            reader(text)
    try:
        exact = quantity.nano(text)
    except QuantityError:
        return
    form = canonical(text)
    thousandths = -(-exact // _NANO_PER_MILLI)
    assert quantity.nano(form) in (exact, thousandths * _NANO_PER_MILLI), form
    assert canonical(form) == form or quantity.nano(canonical(form)) == quantity.nano(form)
    assert quantity.compare(text, text) == 0


def read_by_cel(data: bytes) -> None:
    """CEL's reader agrees with ours about what both can read."""
    text = text_of(data)
    found = cel_quantities.parse(text)
    if isinstance(found, Err):
        assert "\n" not in found.message or "\n" in text
        return
    try:
        exact = quantity.value(text)
    except QuantityError:
        return
    again = cel_quantities.parse(str(exact))
    assert not isinstance(again, Err)


_SEEDS = (
    b"1",
    b"1500m",
    b"1.5Gi",
    b"-0.5",
    b"+1e3",
    b".5E",
    b"100n",
    b"1e-9",
    b"12345678901234567890",
    b"9223372036854775807",
    b"8Ei",
    b" 1 ",
    b"1E6",
    b"0.000000001",
    b"Ki",
)
_WORDS = (
    b"e",
    b"E",
    b"+",
    b"-",
    b".",
    b"Ki",
    b"Ei",
    b"n",
    b"u",
    b"m",
    b"k",
    b"e2147483647",
    b"e-2147483648",
    b"0" * 60,
    b"9" * 70,
    b"9" * 5000,
    b"\xd9\xa3",
    b"_",
)

TARGETS = (
    FuzzTarget(name="quantity", run=read, seeds=_SEEDS, words=_WORDS, max_bytes=8192, brief=2000),
    FuzzTarget(
        name="quantity-cel", run=read_by_cel, seeds=_SEEDS, words=_WORDS, max_bytes=8192, brief=1000
    ),
)
