"""The Common Expression Language, as device selectors of Kubernetes have it.

    text ── parser ──▶ tree ── checker ──▶ typed tree ──┬─ plan ────▶ closures: one device at a time
                                                        └─ columns ─▶ arrays: all devices at once

``compile_selector`` gives a ``CelSelector``, which is asked about one ``CelDevice`` (``matches``);
``compile_column_selector`` a ``ColumnSelector``, which is asked about all devices of a table.
Answers, errors and costs are those of Kubernetes 1.37. The package knows nothing of claims, slices
or scheduling.

What differs from upstream, on purpose:

- Texts of syntax errors: the first error is reported, and what upstream's generated parser finds
  when it goes on is not. What is a syntax error is the same.
- Messages of protocol buffers (``google.protobuf.Duration{seconds: 1}``) cannot be built.
- Expressions that take far more time or memory than they cost end with the error of the cost limit
  (see ``limits``), or do not compile: types of more than 10,000 parts, ``optMap`` of ``optMap``
  beyond ten levels.
- Maps are iterated in the order of the device's attributes; upstream's order is random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.cel.device import CelDevice, quantity, version

if TYPE_CHECKING:
    from kubesched.cel.columns import ColumnSelector
    from kubesched.cel.derived import DerivedAttribute
    from kubesched.cel.selector import CelSelector

__all__ = [
    "CelDevice",
    "compile_column_selector",
    "compile_derived_attribute",
    "compile_selector",
    "quantity",
    "version",
]

# Parser, checker and libraries are imported by the first expression: clusters without devices
# have none, and a scheduler starts a tenth faster without these modules.


def compile_selector(expression: str) -> CelSelector:
    """Return the compiled selector; raises CelError with upstream's text."""
    from kubesched.cel.selector import CelSelector  # noqa: PLC0415

    return CelSelector(expression)


def compile_column_selector(expression: str) -> ColumnSelector:
    """Return a selector for all devices of a table; raises CelError with upstream's text."""
    from kubesched.cel.columns import ColumnSelector  # noqa: PLC0415

    return ColumnSelector(compile_selector(expression))


def compile_derived_attribute(expression: str) -> DerivedAttribute:
    """Return the compiled expression; raises CelError with upstream's text."""
    from kubesched.cel.derived import DerivedAttribute  # noqa: PLC0415

    return DerivedAttribute(expression)
