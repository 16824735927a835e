"""Reading the configuration again: when, what is kept, what is refused, and what is said of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubesched.cli import reloading
from kubesched.cli.reloading import Reloader
from kubesched.config.features import FeatureGates
from kubesched.config.types import LeaderElection, SchedulerConfiguration
from kubesched.errors import ConfigError
from kubesched.logs.formats import ERR, FIELDS
from tests.support.waiting import eventually

BEFORE = SchedulerConfiguration.default(FeatureGates.of({}))
AFTER = replace(BEFORE, pod_initial_backoff_seconds=7)


class Bench:
    """A reloader, what its file means, and who uses it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.meaning: SchedulerConfiguration | Exception = BEFORE
        self.reads = 0
        self.applied: list[SchedulerConfiguration] = []
        self.refusal: Exception | None = None
        file.write_text("before")
        self.reloader = Reloader(str(file), self._read, BEFORE, apply=self._apply)

    def _read(self) -> SchedulerConfiguration:
        self.reads += 1
        if isinstance(self.meaning, Exception):
            raise self.meaning
        return self.meaning

    def _apply(self, config: SchedulerConfiguration) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.applied.append(config)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "config.yaml")


def test_what_the_file_says_is_used(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench.meaning = AFTER
    bench.reloader.reload()
    assert bench.applied == [AFTER]
    assert bench.reloader.config == AFTER
    assert [each.getMessage() for each in caplog.records] == ["Configuration in use"]
    assert vars(caplog.records[0])[FIELDS] == {
        "file": str(bench.file),
        "profiles": ["default-scheduler"],
    }


@pytest.mark.parametrize("who", ["whoever reads it", "whoever is to use it"])
def test_what_cannot_be_used_is_refused_in_one_line(
    bench: Bench, caplog: pytest.LogCaptureFixture, who: str
) -> None:
    refusal = ConfigError("profiles[0].schedulerName: Required value")
    if who == "whoever reads it":
        bench.meaning = refusal
    else:
        bench.meaning, bench.refusal = AFTER, refusal
    bench.reloader.reload()
    assert bench.reloader.config == BEFORE
    assert bench.applied == []
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "Configuration rejected, the previous one stays in use"
    assert vars(record)[ERR] is refusal
    assert vars(record)[FIELDS] == {"file": str(bench.file)}


def test_a_bug_does_not_end_the_scheduler(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.meaning = ZeroDivisionError("a bug")
    bench.reloader.reload()
    assert bench.reloader.config == BEFORE
    (record,) = caplog.records
    assert "failed unexpectedly" in record.getMessage()
    bench.meaning = AFTER
    bench.reloader.reload()
    assert bench.reloader.config == AFTER


def test_what_only_a_start_can_change_stays_and_is_named(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    elected = LeaderElection(leader_elect=not BEFORE.leader_election.leader_elect)
    bench.meaning = replace(AFTER, leader_election=elected, delay_cache_until_active=True)
    for _ in range(2):
        caplog.clear()
        bench.reloader.reload()
        assert bench.reloader.config == AFTER
        assert bench.applied[-1] == AFTER
        # It is said every time: it is still so.
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert vars(record)[FIELDS] == {"fields": ["leaderElection", "delayCacheUntilActive"]}


def test_without_a_file_there_is_nothing_to_read(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> SchedulerConfiguration:
        raise AssertionError("nothing is to be read")

    reloader = Reloader("", fail, BEFORE, apply=fail)  # type: ignore[arg-type]
    reloader.reload()
    asyncio.run(asyncio.wait_for(reloader.watch(), 1))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "start with --config" in record.getMessage()


# ---------------------------------------------------------------------- watching


def _watch(bench: Bench, monkeypatch: pytest.MonkeyPatch, steps: Iterator[tuple[str, int]]) -> None:
    """Do one step after the other, and check how often the file has been read after each."""
    monkeypatch.setattr(reloading, "PERIOD_S", 0.002)

    async def main() -> None:
        watching = asyncio.create_task(bench.reloader.watch())
        for what, reads in steps:
            await eventually(lambda: bench.reads >= reads, seconds=5)  # noqa: B023 (at once)
            await asyncio.sleep(0.02)  # several periods, in which it is not read again
            assert bench.reads == reads, what
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(main())


def test_a_file_is_read_again_when_it_says_something_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps() -> Iterator[tuple[str, int]]:
        yield "nothing happened", 0
        bench.file.write_text("before")
        yield "written again, but the same", 0
        bench.file.write_text("after")
        yield "changed", 1
        bench.file.unlink()
        yield "gone", 1
        bench.file.write_text("after")
        yield "back as it was", 1
        bench.meaning = ConfigError("no good")
        bench.file.write_text("broken")
        yield "broken: tried once", 2
        bench.meaning = AFTER
        bench.file.write_text("mended")
        yield "mended", 3

    _watch(bench, monkeypatch, steps())
    assert bench.reloader.config == AFTER


def test_links_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ConfigMap's volume is changed by swapping a link to a folder."""
    for version in ("v1", "v2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "config").write_text(version)
    (tmp_path / "data").symlink_to("v1")
    (tmp_path / "config").symlink_to(Path("data") / "config")
    bench = Bench(tmp_path / "config")
    (tmp_path / "v1" / "config").write_text("before")

    def steps() -> Iterator[tuple[str, int]]:
        yield "nothing happened", 0
        (tmp_path / "next").symlink_to("v2")
        (tmp_path / "next").replace(tmp_path / "data")
        yield "swapped", 1

    _watch(bench, monkeypatch, steps())
