"""Selectors of devices: CEL expressions, compiled once each, evaluated for devices of slices.

CEL is imported by the first expression: clusters without devices have none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kubesched.api.resource import Device
from kubesched.errors import CelError

if TYPE_CHECKING:
    from kubesched.cel import CelDevice
    from kubesched.cel.selector import CelSelector

#: How many compiled expressions are cached.
_COMPILED: Final = 1024


class CelDeviceSelector:
    """A compiled expression."""

    __slots__ = ("_convert", "_selector")

    def __init__(self, selector: CelSelector, convert: Callable[[Device, str], CelDevice]) -> None:
        self._selector = selector
        self._convert = convert

    def matches(self, device: Device, driver: str) -> bool:
        """Return whether a device is selected; raises CelRuntimeError if the evaluation fails."""
        return self._selector.matches(self._convert(device, driver))


@lru_cache(maxsize=_COMPILED)
def _compiled(expression: str) -> CelDeviceSelector | CelError:
    from kubesched import cel  # noqa: PLC0415
    from kubesched.plugins.device_conversion import converted  # noqa: PLC0415

    try:
        return CelDeviceSelector(cel.compile_selector(expression), converted)
    except CelError as malformed:
        return malformed


def compile_selector(expression: str) -> CelDeviceSelector:
    """Compile an expression; raises CelError if it makes no sense."""
    compiled = _compiled(expression)
    if isinstance(compiled, CelError):
        raise CelError(str(compiled))
    return compiled
