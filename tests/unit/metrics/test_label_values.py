"""How values of labels are made."""

from __future__ import annotations

import pytest

from kubesched.metrics.label_values import attempts_label, user_label


@pytest.mark.parametrize(("attempts", "want"), [(1, "1"), (14, "14"), (15, "15+"), (200, "15+")])
def test_attempts(attempts: int, want: str) -> None:
    assert attempts_label(attempts) == want


@pytest.mark.parametrize(
    ("user", "want"),
    [
        ("admin", "admin"),
        ("kubelet", "kubelet"),
        ("system:serviceaccount:kube-system:default", "system:serviceaccount:kube-system:default"),
        ("someone@example.com", "email_id"),
        ("system:serviceaccount:monitoring:prometheus", "other"),
        ("", "other"),
    ],
)
def test_users_are_not_named(user: str, want: str) -> None:
    assert user_label(user) == want
