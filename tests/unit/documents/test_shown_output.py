"""What a document shows is compared with what a command prints, but for what is by chance."""

from __future__ import annotations

import pytest

from tests.documents.shown_output import MismatchError, compare


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("4 pods bound in 4.4 s, 1138 pods/s", "4 pods bound in 5.1 s, 900 pods/s"),
        ("node   pods\nn1     3", "node        pods\nn1             3\n\n"),
        ("serving at http://127.0.0.1:40909", "serving at http://127.0.0.1:31"),
        ("failed at /home/me/x.py:13: no", "failed at /tmp/a-b/c_d/x.py:13: no"),
        ('I1116 00:46:15.594499   21154 a.py:147] "x"', 'I0101 10:06:15.000001 1 a.py:1] "x"'),
        ("first\n…\nlast", "first\nlast"),
        ("first\n…\nlast", "first\nsecond\nthird\nlast"),
        ("0/3 nodes are available: …", "0/3 nodes are available: 3 Insufficient cpu."),
    ],
)
def test_the_same(shown: str, printed: str) -> None:
    compare(shown.splitlines(), printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("4 pods bound", "5 pods bound"),
        ("3 passed in 0.1s", "2 passed in 0.1s"),
        ("first", "first\nsecond"),
        ("second", "first\nsecond"),
        ("first\nsecond", "first"),
        ("failed at /home/me/x.py:13: no", "failed at /tmp/x.py:14: no"),
        ("failed at /home/me/x.py:13: no", "failed at /tmp/y.py:13: no"),
        ("took 3 s", "took 3 ms"),
        ("first\n…\nlast", "first\nlast\nmore"),
    ],
)
def test_not_the_same(shown: str, printed: str) -> None:
    with pytest.raises(MismatchError):
        compare(shown.splitlines(), printed)


def test_more_may_follow_of_a_program_that_goes_on() -> None:
    compare(["first"], "first\nsecond", whole=False)


def test_a_mismatch_names_the_first_line_that_differs() -> None:
    with pytest.raises(MismatchError, match=r"(?s)shows\n    two\n.*printed\n    one\n    three"):
        compare(["one", "two"], "one\nthree")


def test_what_stood_in_place_of_a_path_is_told() -> None:
    found = compare(["export KUBECONFIG=/home/me/kubeconfig"], "export KUBECONFIG=/a_b/kubeconfig")

    assert found == {"/home/me/kubeconfig": "/a_b/kubeconfig"}
