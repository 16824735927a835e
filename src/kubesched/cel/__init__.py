"""The Common Expression Language, as device selectors of Kubernetes have it.

    text ── parser ──▶ tree ── checker ──▶ typed tree ──┬─ plan ────▶ closures: one device at a time
                                                        └─ columns ─▶ arrays: all devices at once

``compile_selector`` gives a ``Selector``, which is asked about one ``Device`` (``matches``);
``columns`` asks about all devices of a table. Answers, errors and costs are those of Kubernetes
1.37. The package knows nothing of claims, slices or scheduling.
"""

from kubesched.cel.derived import DerivedAttribute, compile_derived_attribute
from kubesched.cel.device import Device
from kubesched.cel.selector import Selector, compile_selector

__all__ = [
    "DerivedAttribute",
    "Device",
    "Selector",
    "compile_derived_attribute",
    "compile_selector",
]
