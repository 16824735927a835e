"""Resource numbers, and requests as vectors over them."""

from __future__ import annotations

from kubesched.cluster.resources import CPU, EPHEMERAL_STORAGE, MEMORY, Requests, ResourceIndex
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of

GPU = "example.com/gpu"


def _requested(requests: Requests, index: ResourceIndex) -> dict[str, int]:
    requests.resolve(index)
    return {
        index.names[number]: amount
        for number, amount in zip(requests.numbers.tolist(), requests.vector.tolist(), strict=True)
    }


def test_cpu_memory_and_ephemeral_storage_come_first() -> None:
    index = ResourceIndex()
    assert index.find("cpu") == CPU
    assert index.find("memory") == MEMORY
    assert index.find("ephemeral-storage") == EPHEMERAL_STORAGE
    assert index.find(GPU) is None
    assert index.add(GPU) == 3
    assert index.find(GPU) == 3


def test_requests_name_only_what_some_node_offers() -> None:
    index = ResourceIndex()
    requests = Requests({"cpu": 100, GPU: 2}, (100, 0))
    assert _requested(requests, index) == {"cpu": 100}
    index.add(GPU)
    assert _requested(requests, index) == {"cpu": 100, GPU: 2}


def test_a_request_of_zero_is_left_out() -> None:
    requests = Requests({"cpu": 0, "memory": 5}, (100, 5))
    assert _requested(requests, ResourceIndex()) == {"memory": 5}


def test_a_resource_requested_before_any_node_offers_it_is_counted_when_one_does() -> None:
    wanting = pod("early", node="n1", requests={GPU: "2"})
    cluster = cluster_of(node("n1"), node("n2"), wanting)
    table = cluster.table
    assert table.resources.find(GPU) is None
    cluster.put_node(node("n2", resources={GPU: "8"}))
    number = table.resources.find(GPU)
    assert number is not None
    assert table.requested[number, table.row_of("n1")] == 2
    assert table.requested[number, table.row_of("n2")] == 0
    assert table.allocatable[number, table.row_of("n2")] == 8
    cluster.validate()
    cluster.remove_pod("early")
    assert table.requested[number, table.row_of("n1")] == 0
    cluster.validate()


def test_pods_that_name_resources_at_will_do_not_make_the_table_grow() -> None:
    cluster = cluster_of(node("n1"))
    for number in range(20):
        name = f"example.com/made-up-{number}"
        cluster.put_pod(pod(f"p{number}", node="n1", requests={name: "1"}))
    assert len(cluster.table.resources) == 3
    assert cluster.table.requested.shape[0] == 3
