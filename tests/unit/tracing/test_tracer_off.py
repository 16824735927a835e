"""Without --tracing-config-file nothing of tracing is imported, and nothing is asked of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from kubesched.framework.observing import Observer
from kubesched.scheduler.profiles import Profiles
from kubesched.tracing.tracer import AttemptTracer
from tests.support.embedded_scheduler import scheduler
from tests.support.waiting import eventually


def test_no_package_of_the_extra_is_imported() -> None:
    code = (
        "import sys, kubesched.cli.component, kubesched.cli.kube_scheduler; "
        "print([each for each in ('grpc', 'google.protobuf', 'opentelemetry', "
        "'kubesched.tracing.exporting', 'kubesched.tracing.tracer') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_no_attempt_calls_the_tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    made: list[type[Observer]] = []
    for name, method in list(vars(AttemptTracer).items()):
        if callable(method) and not name.startswith("__"):
            monkeypatch.setattr(AttemptTracer, name, lambda *_, name=name: calls.append(name))
    real = Profiles._make_observer

    def make(self: Profiles, profile: str) -> Observer:
        observer = real(self, profile)
        made.append(type(observer))
        return observer

    monkeypatch.setattr(Profiles, "_make_observer", make)

    async def main() -> None:
        async with scheduler(nodes=3) as here:
            for number in range(20):
                here.create_pod(f"p{number}")
            await eventually(lambda: all(here.node_of(f"p{number}") for number in range(20)))

    asyncio.run(main())
    assert calls == []
    assert made == [Observer]
