"""Pending pods by the claims that they name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.cluster.claim_users import ClaimUsers
from tests.support.device_objects import claiming, claiming_from_template
from tests.support.objects import pod


def test_pods_are_found_by_the_claims_that_they_name() -> None:
    users = ClaimUsers()
    users.put(claiming(pod("a"), "c", "d", "c"))
    users.put(claiming(pod("b"), "c"))
    users.put(pod("none"))
    assert list(users.of(("default", "c"))) == ["default/a", "default/b"]
    assert list(users.of(("default", "d"))) == ["default/a"]
    assert list(users.of(("other", "c"))) == []
    users.validate()


def test_a_claim_made_from_a_template_is_known_once_it_is_made() -> None:
    users = ClaimUsers()
    users.put(claiming_from_template(pod("a"), "t"))
    users.put(claiming_from_template(pod("b"), "t", None))
    assert list(users.of(("default", "made"))) == []
    users.put(claiming_from_template(pod("a"), "t", "made"))
    assert list(users.of(("default", "made"))) == ["default/a"]
    users.validate()


def test_pods_with_a_node_are_forgotten() -> None:
    users = ClaimUsers()
    users.put(claiming(pod("a"), "c"))
    users.remove("a")
    users.remove("a")
    assert list(users.of(("default", "c"))) == []
    users.validate()


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from("cde")) | st.none()), max_size=12
    )
)
def test_it_is_what_the_newest_version_of_each_pod_says(
    steps: list[tuple[str, list[str] | None]],
) -> None:
    users, newest = ClaimUsers(), dict[str, Pod]()
    for name, claims in steps:
        if claims is None:
            users.remove(name)
            newest.pop(name, None)
        else:
            newest[name] = claiming(pod(name), *claims)
            users.put(newest[name])
        users.validate()
    for each in "cde":
        want = {
            f"default/{name}"
            for name, made in newest.items()
            if any(of.resource_claim_name == each for of in made.spec.resource_claims)
        }
        assert set(users.of(("default", each))) == want
