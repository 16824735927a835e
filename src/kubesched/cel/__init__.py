"""The Common Expression Language, as device selectors of Kubernetes have it.

    text ── parser ──▶ tree ── checker ──▶ typed tree ──┬─ plan ────▶ closures: one device at a time
                                                        └─ columns ─▶ arrays: all devices at once

``compile_selector`` gives a ``CelSelector``, which is asked about one ``CelDevice`` (``matches``);
``columns`` asks about all devices of a table. Answers, errors and costs are those of Kubernetes
1.37. The package knows nothing of claims, slices or scheduling.

What differs from upstream, on purpose:

- Texts of syntax errors: the first error is reported, and what upstream's generated parser finds
  when it goes on is not. What is a syntax error is the same.
- Messages of protocol buffers (``google.protobuf.Duration{seconds: 1}``) cannot be built.
- Expressions that take far more time or memory than they cost end with the error of the cost limit
  (see ``limits``), or do not compile: types of more than 10,000 parts, ``optMap`` of ``optMap``
  beyond ten levels.
- Maps are iterated in the order of the device's attributes; upstream's order is random.
"""

from kubesched.cel.derived import DerivedAttribute, compile_derived_attribute
from kubesched.cel.device import CelDevice, quantity, version
from kubesched.cel.selector import CelSelector, compile_selector

__all__ = [
    "CelDevice",
    "CelSelector",
    "DerivedAttribute",
    "compile_derived_attribute",
    "compile_selector",
    "quantity",
    "version",
]
