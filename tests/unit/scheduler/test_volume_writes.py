"""What is written to the API server about volumes, and how others are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.storage import (
    ANNOTATION_BOUND_BY_CONTROLLER,
    ANNOTATION_SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.cluster.storage import Storage
from kubesched.errors import ConflictError, ObjectError
from kubesched.plugins.volume_binder import with_selected_node
from kubesched.plugins.volume_matching import bound_to_claim
from kubesched.scheduler import volume_writes
from kubesched.scheduler.volume_writes import VolumeWrites
from tests.support.volume_scheduling import claim, volume

KEY = ("default", "c")
#: Longer than any test takes: it must not come to that.
LONG_S = 60.0


class Client:
    """A client that writes down what it is asked to patch, and answers as it is told."""

    def __init__(self) -> None:
        self.patched: list[tuple[str, Any]] = []
        self.answer: PersistentVolume | PersistentVolumeClaim | Exception = claim()

    async def patch(self, path: str, body: Any, *, type: type[Any]) -> Any:  # noqa: A002 (the client's)
        self.patched.append((path, body))
        if isinstance(self.answer, Exception):
            raise self.answer
        assert isinstance(self.answer, type)
        return self.answer


class Bench:
    def __init__(self) -> None:
        self.client = Client()
        self.storage = Storage()
        anything: Any = self.client
        self.writes = VolumeWrites(anything, self.storage)


# --- writing ------------------------------------------------------------------------------------


def test_binding_a_volume_sends_the_claim_and_nothing_else() -> None:
    bench = Bench()
    bench.client.answer = volume(version="8")
    bound, _ = bound_to_claim(volume(version="7", annotations={"a": "b"}), claim(version="5"))

    answer = asyncio.run(bench.writes.write_volume(bound))

    assert answer == volume(version="8")
    path, body = bench.client.patched[0]
    assert path == "/api/v1/persistentvolumes/v"
    assert body == {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {ANNOTATION_BOUND_BY_CONTROLLER: "yes"},
        },
        "spec": {
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": "default",
                "name": "c",
                "uid": "c",
                "resourceVersion": "5",
                "fieldPath": None,
            }
        },
    }


def test_a_volume_that_its_author_kept_for_the_claim_gets_no_annotation() -> None:
    bench = Bench()
    bench.client.answer = volume()
    bound, _ = bound_to_claim(volume(kept_for="c"), claim())

    asyncio.run(bench.writes.write_volume(bound))

    assert bench.client.patched[0][1]["metadata"] == {"resourceVersion": "1"}


def test_selecting_a_node_sends_the_annotation_and_nothing_else() -> None:
    bench = Bench()
    chosen = with_selected_node(claim(version="7", annotated_class="wait"), "n1")

    asyncio.run(bench.writes.write_claim(chosen))

    path, body = bench.client.patched[0]
    assert path == "/api/v1/namespaces/default/persistentvolumeclaims/c"
    assert body == {
        "metadata": {"resourceVersion": "7", "annotations": {ANNOTATION_SELECTED_NODE: "n1"}}
    }


def test_a_conflict_is_for_the_caller() -> None:
    bench = Bench()
    bench.client.answer = ConflictError("changed meanwhile", code=409)
    with pytest.raises(ConflictError, match="changed meanwhile"):
        asyncio.run(bench.writes.write_claim(claim(selected="n1")))


# --- waiting ------------------------------------------------------------------------------------


class Checks:
    """Says yes from the n-th question on."""

    def __init__(self, yes_from: int) -> None:
        self.asked = 0
        self._yes_from = yes_from

    def __call__(self) -> bool:
        self.asked += 1
        return self.asked >= self._yes_from


def wait_while(
    bench: Bench, checks: Checks, happens: Callable[[], None], *, timeout_s: float = LONG_S
) -> bool:
    async def run() -> bool:
        task = asyncio.create_task(bench.writes.poll(checks, claims={KEY}, timeout_s=timeout_s))
        for _ in range(3):
            await asyncio.sleep(0)
        happens()
        async with asyncio.timeout(5):
            return await task

    return asyncio.run(run())


@pytest.fixture
def rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking again by the clock takes longer than any test."""
    monkeypatch.setattr(volume_writes, "POLL_INTERVAL_S", LONG_S)


@pytest.mark.usefixtures("rarely")
class TestWaking:
    def test_who_is_satisfied_does_not_wait(self) -> None:
        checks = Checks(1)
        assert wait_while(Bench(), checks, lambda: None)
        assert checks.asked == 1

    @pytest.mark.parametrize(
        "changed", [claim(volume="v", bound=True), volume(kept_for="c", phase="Bound")]
    )
    def test_a_change_of_the_claim_or_of_its_volume_wakes(
        self, changed: PersistentVolume | PersistentVolumeClaim
    ) -> None:
        bench, checks = Bench(), Checks(2)

        def happens() -> None:
            if isinstance(changed, PersistentVolume):
                bench.storage.volumes.put(changed)
            else:
                bench.storage.claims.put(changed)

        assert wait_while(bench, checks, happens)
        assert checks.asked == 2

    def test_changes_of_others_do_not(self) -> None:
        bench, checks = Bench(), Checks(1000)
        elsewhere = replace(claim(), metadata=replace(claim().metadata, namespace="elsewhere"))

        def happens() -> None:
            bench.storage.claims.put(claim("other"))
            bench.storage.claims.put(elsewhere)
            bench.storage.volumes.put(volume(kept_for="other"))
            bench.storage.volumes.put(volume("free"))
            bench.storage.volumes.remove(volume("free"))

        assert not wait_while(bench, checks, happens, timeout_s=0.05)
        assert checks.asked == 2, "once at first, and once at the end"

    def test_the_removal_of_the_claim_wakes(self) -> None:
        bench, checks = Bench(), Checks(2)
        bench.storage.claims.put(claim())
        assert wait_while(bench, checks, lambda: bench.storage.claims.remove(claim()))


def test_it_looks_again_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_writes, "POLL_INTERVAL_S", 0.001)
    checks = Checks(5)
    assert wait_while(Bench(), checks, lambda: None)
    assert checks.asked == 5


def test_time_runs_out() -> None:
    checks = Checks(1000)
    assert not wait_while(Bench(), checks, lambda: None, timeout_s=0.02)
    assert checks.asked == 2, "once at first, and once at the end"


def test_what_the_check_raises_ends_the_wait_and_nobody_is_left_listening() -> None:
    bench = Bench()

    def fail() -> bool:
        raise ObjectError("gone")

    with pytest.raises(ObjectError, match="gone"):
        asyncio.run(bench.writes.poll(fail, claims={KEY}, timeout_s=LONG_S))
    assert bench.writes._waiting.claims == set()


def test_a_wait_that_is_cancelled_leaves_nobody_listening() -> None:
    bench = Bench()

    async def run() -> None:
        task = asyncio.create_task(bench.writes.poll(lambda: False, claims={KEY}, timeout_s=LONG_S))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert bench.writes._waiting.claims == {KEY}
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert bench.writes._waiting.claims == set()


def test_two_pods_may_wait_for_one_claim() -> None:
    bench = Bench()
    bound = Checks(2)

    async def run() -> list[bool]:
        waits = [
            asyncio.create_task(bench.writes.poll(check, claims={KEY}, timeout_s=LONG_S))
            for check in (bound, Checks(2))
        ]
        for _ in range(3):
            await asyncio.sleep(0)
        bench.storage.claims.put(claim(volume="v", bound=True))
        async with asyncio.timeout(5):
            return list(await asyncio.gather(*waits))

    assert asyncio.run(run()) == [True, True]
