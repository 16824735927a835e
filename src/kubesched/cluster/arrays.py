"""Array types and the growable arrays that columns are made of."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

Float64Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

#: Which rows an expression is evaluated for: all of them, or an index array.
Rows = slice | IndexArray

DType = TypeVar("DType", bound=np.generic)


def grown(array: npt.NDArray[DType], shape: tuple[int, ...], fill: Any = 0) -> npt.NDArray[DType]:  # noqa: ANN401 (any scalar that the dtype takes)
    """Return a copy of `array` extended to `shape`, padded with `fill`."""
    result = np.full(shape, fill, dtype=array.dtype)
    result[tuple(slice(0, n) for n in array.shape)] = array
    return result


def read_only(array: npt.NDArray[DType]) -> npt.NDArray[DType]:
    """Return a read-only view of the same memory."""
    shown = array.view()
    shown.setflags(write=False)
    return shown
