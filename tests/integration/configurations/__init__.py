"""Configurations to ask both schedulers about, right and wrong ones, by what they are about.

Each module of cases has a table ``CASES``: name to Case. None says what the answer is: that is for
kube-scheduler to say. ``asking`` asks.
"""

from __future__ import annotations

from . import argument_cases, document_cases, extender_cases, profile_cases, top_level

ALL = {
    f"{kind}: {name}": each
    for kind, table in (
        ("field", top_level.CASES),
        ("profile", profile_cases.CASES),
        ("arguments", argument_cases.CASES),
        ("extender", extender_cases.CASES),
        ("file", document_cases.CASES),
    )
    for name, each in table.items()
}
