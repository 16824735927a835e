"""DefaultBinder: binds through whoever talks to the API server."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.errors import ConflictError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SUCCESS, error
from tests.support.objects import node, pod
from tests.support.scheduling import Lab


def test_a_pod_is_bound() -> None:
    lab = Lab(node("n1"))
    binding = lab.plugin("DefaultBinder").bind(CycleState(), lab.pending(pod("web")), "n1")
    assert asyncio.run(binding) == SUCCESS
    assert lab.binder.bound == [("default/web", "n1")]


def test_a_refusal_of_the_api_server_is_an_error() -> None:
    lab = Lab(node("n1"))
    lab.binder.failure = ConflictError("pod web is already assigned to node n2", code=409)
    info = lab.pending(pod("web"))
    status = asyncio.run(lab.plugin("DefaultBinder").bind(CycleState(), info, "n1"))
    assert status == error("pod web is already assigned to node n2")
    wrapped = asyncio.run(lab.framework.bind(CycleState(), info, "n1"))
    assert wrapped.message == (
        'running Bind plugin "DefaultBinder": pod web is already assigned to node n2'
    )


def test_a_bug_is_not_mistaken_for_a_refusal() -> None:
    lab = Lab(node("n1"))
    lab.binder.failure = ZeroDivisionError()
    binding = lab.plugin("DefaultBinder").bind(CycleState(), lab.pending(pod("web")), "n1")
    with pytest.raises(ZeroDivisionError):
        asyncio.run(binding)
