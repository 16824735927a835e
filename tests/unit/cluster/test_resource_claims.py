"""Claims in their newest version, and the devices that they take."""

from __future__ import annotations

from kubesched.cluster.device_uses import DeviceUses
from kubesched.cluster.resource_claims import ANNOTATION_EXTENDED_RESOURCES, ResourceClaims
from tests.support.device_objects import DRIVER, allocated, allocation, claim, result


def taken(claims: ResourceClaims, uses: DeviceUses, name: str = "a") -> bool:
    claims.validate()
    return uses.of((DRIVER, "n1", name)) is not None


def fresh() -> tuple[ResourceClaims, DeviceUses]:
    uses = DeviceUses()
    return ResourceClaims(uses), uses


def test_a_device_is_taken_as_long_as_its_claim_is_allocated() -> None:
    claims, uses = fresh()
    claims.put(allocated(claim(), result("a"), version="2"))
    assert taken(claims, uses)
    claims.put(claim(version="3"))
    assert not taken(claims, uses)
    claims.put(allocated(claim(), result("a"), version="4"))
    claims.remove(claim())
    assert not taken(claims, uses)


def test_access_for_administrators_takes_nothing() -> None:
    claims, uses = fresh()
    claims.put(allocated(claim(), result("a", admin=True)))
    assert not taken(claims, uses)


def test_shares_and_what_they_consume_add_up() -> None:
    claims, uses = fresh()
    one = allocated(claim("1"), result("a", share="s1", consumed={"m": "1Gi"}))
    claims.put(one)
    claims.put(allocated(claim("2"), result("a", share="s2", consumed={"m": "2Gi"})))
    use = uses.of((DRIVER, "n1", "a"))
    assert use is not None
    assert (use.shares, use.dedicated) == (2, 0)
    assert use.consumed == {"m": (3 << 30) * 10**9}
    claims.remove(one)
    assert use.consumed == {"m": (2 << 30) * 10**9}


def test_what_we_wrote_shows_until_the_watch_brings_it_or_something_newer() -> None:
    claims, uses = fresh()
    claims.put(claim(version="5"))
    assert claims.written(allocated(claim(), result("a"), version="7"))
    assert taken(claims, uses)
    claims.put(claim(version="6"))
    assert taken(claims, uses)
    claims.put(claim(version="8"))
    assert not taken(claims, uses)


def test_an_answer_that_is_older_than_what_is_known_does_not_count() -> None:
    claims, uses = fresh()
    claims.put(claim(version="9"))
    assert claims.written(allocated(claim(), result("a"), version="7"))
    assert not taken(claims, uses)
    assert not claims.written(claim("unknown"))


def test_a_claim_of_the_same_name_made_anew_is_another_claim() -> None:
    claims, uses = fresh()
    claims.put(claim(version="5"))
    claims.written(allocated(claim(), result("a"), version="7"))
    claims.put(claim(version="6", uid="another"))
    assert not taken(claims, uses)


def test_a_pending_allocation_counts_until_the_last_pod_lets_it_go() -> None:
    claims, uses = fresh()
    claims.put(claim())
    claims.signal("claim-c", allocation(result("a")))
    claims.signal("claim-c", allocation(result("a")))
    assert taken(claims, uses)
    assert claims.pending("claim-c") == allocation(result("a"))
    assert not claims.drop("claim-c")
    assert taken(claims, uses)
    assert claims.drop("claim-c")
    assert not taken(claims, uses)
    assert not claims.drop("claim-c")


def test_a_pending_allocation_that_is_written_is_gone_for_all() -> None:
    claims, uses = fresh()
    claims.put(claim())
    claims.signal("claim-c", allocation(result("a")))
    claims.signal("claim-c", allocation(result("a")))
    claims.written(allocated(claim(), result("a"), version="2"))
    assert claims.drop("claim-c", is_written=True)
    assert claims.pending("claim-c") is None
    assert taken(claims, uses)


def test_the_claim_for_the_extended_resources_of_a_pod_is_found() -> None:
    claims, _ = fresh()
    marked = {ANNOTATION_EXTENDED_RESOURCES: "true"}
    claims.put(claim("x", owner="p1", annotations=marked))
    claims.put(claim("y", owner="p2"))
    assert claims.of_extended_resources("p1") == claim("x", owner="p1", annotations=marked)
    assert claims.of_extended_resources("p2") is None
