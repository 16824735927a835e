"""Messages without names."""

from __future__ import annotations

import pytest

from kubesched.recording.messages import same_without_names, without_names


@pytest.mark.parametrize(
    ("message", "masked"),
    [
        ("0/5 nodes are available: 5 Insufficient cpu.", None),
        ('persistentvolumeclaim "data" not found', 'persistentvolumeclaim "*" not found'),
        (
            "1 node(s) had untolerated taint {dedicated: alice}",
            "1 node(s) had untolerated taint {*}",
        ),
        (
            "unsupported volumeAttributesClassName is set on claim shop/data when the gate is off",
            "unsupported volumeAttributesClassName is set on claim * when the gate is off",
        ),
        (
            "preemption: found a potential placement for pod on node n-1.a, preempting 2 victims",
            "preemption: found a potential placement for pod on node *, preempting 2 victims",
        ),
    ],
)
def test_names_are_masked(message: str, masked: str | None) -> None:
    assert without_names(message) == (masked or message)


def test_reasons_may_be_in_another_order() -> None:
    one = "0/3 nodes are available: 1 taint {a: x}, 2 taint {b: y}. preemption: 0/3 are."
    other = "0/3 nodes are available: 2 taint {k: p}, 1 taint {z: q}. preemption: 0/3 are."
    assert same_without_names(without_names(one), other)


def test_other_reasons_and_other_counts_are_not_the_same() -> None:
    one = "0/3 nodes are available: 3 Insufficient cpu."
    assert not same_without_names(one, "0/3 nodes are available: 3 Insufficient memory.")
    assert not same_without_names(one, "0/3 nodes are available: 2 Insufficient cpu.")
