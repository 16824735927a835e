"""What is explained, in kubectl's words."""

from __future__ import annotations

import pytest

from kubesched.errors import UsageError
from kubesched.explain.targets import ExplainTarget, read_target


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ([], ExplainTarget()),
        (["web-1"], ExplainTarget("Pod", "", "web-1")),
        (["shop/web-1"], ExplainTarget("Pod", "shop", "web-1")),
        (["pod", "shop/web-1"], ExplainTarget("Pod", "shop", "web-1")),
        (["po/web-1"], ExplainTarget("Pod", "", "web-1")),
        (["podgroup/ml/train"], ExplainTarget("PodGroup", "ml", "train")),
        (["podgroups", "train"], ExplainTarget("PodGroup", "", "train")),
        (["deploy/web"], ExplainTarget("Deployment", "", "web")),
        (["deployment/shop/web"], ExplainTarget("Deployment", "shop", "web")),
        (["Deployments", "shop/web"], ExplainTarget("Deployment", "shop", "web")),
        (["rs/web-1"], ExplainTarget("ReplicaSet", "", "web-1")),
        (["sts/db"], ExplainTarget("StatefulSet", "", "db")),
        (["ds", "agent"], ExplainTarget("DaemonSet", "", "agent")),
        (["job/nightly"], ExplainTarget("Job", "", "nightly")),
        (["rc/old"], ExplainTarget("ReplicationController", "", "old")),
        # A kind of its own: two words, as a namespace may be called so.
        (["rollout", "web"], ExplainTarget("rollout", "", "web")),
    ],
)
def test_words_name_one_thing(words: list[str], target: ExplainTarget) -> None:
    assert read_target(words) == target


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b", "c"], "name one thing, as in "),
        (["pod/a", "b"], "name one thing, as in "),
        (["deploy"], "name the deploy, as in 'kubesched explain deploy NAMESPACE/NAME'"),
        (["deplyo/shop/web"], "there is no kind deplyo: did you mean deploy/shop/web?"),
        (["deploy/"], "'' is not a name: write NAME or NAMESPACE/NAME"),
        (["deploy/a/b/c"], "'a/b/c' is not a name"),
    ],
)
def test_other_words_are_one_clear_line(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as wrong:
        read_target(words)
    assert str(wrong.value).startswith(message)


def test_only_makers_of_pods_are_workloads() -> None:
    assert read_target(["sts/db"]).is_workload
    assert not read_target(["podgroup/a/b"]).is_workload
    assert not ExplainTarget().is_workload
