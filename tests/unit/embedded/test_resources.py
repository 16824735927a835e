"""What the embedded API server serves, and where."""

from __future__ import annotations

import pytest

from kubesched.embedded.resources import BY_KIND, with_all_kinds
from kubesched.kinds import KINDS, ObjectKind


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_that_the_scheduler_reads_is_served_where_it_looks(kind: ObjectKind) -> None:
    served = BY_KIND[kind.path.api_version, kind.called]
    assert (served.prefix, served.plural) == (kind.path.group_path, kind.path.plural)
    assert served.namespaced == kind.path.namespaced


def test_a_kind_without_particulars_is_served_all_the_same() -> None:
    plain = {each.kind: each for each in with_all_kinds(())}
    assert plain.keys() == {kind.called for kind in KINDS.values()}
    assert len(with_all_kinds(())) == len(KINDS)
    assert plain["CSINode"].prefix == "/apis/storage.k8s.io/v1"
    assert not plain["CSINode"].namespaced
