"""Images by name, cluster-wide: where they are, and how large."""

from __future__ import annotations

from kubesched.api.core import ContainerImage, Node, NodeStatus
from kubesched.cluster.images import Images, image_sizes
from tests.support.objects import node


def _sizes(images: Images, *names: str) -> list[tuple[int, set[int]] | None]:
    states = [images.find(name) for name in names]
    return [(state.size_bytes, state.rows) if state else None for state in states]


def test_the_size_is_that_of_the_node_that_had_it_first() -> None:
    images = Images()
    images.replace(0, None, node("a", images={"web:1": 100}))
    images.replace(1, None, node("b", images={"web:1": 999}))
    assert _sizes(images, "web:1") == [(100, {0, 1})]


def test_an_image_that_only_this_node_has_takes_its_new_size() -> None:
    images = Images()
    old = node("a", images={"web:1": 100})
    new = node("a", images={"web:1": 200})
    images.replace(0, None, old)
    images.replace(0, old, new)
    assert _sizes(images, "web:1") == [(200, {0})]


def test_an_image_that_others_have_keeps_its_size_when_one_node_reports_another() -> None:
    images = Images()
    old = node("a", images={"web:1": 100})
    images.replace(0, None, old)
    images.replace(1, None, node("b", images={"web:1": 100}))
    images.replace(0, old, node("a", images={"web:1": 777}))
    assert _sizes(images, "web:1") == [(100, {0, 1})]


def test_an_image_is_forgotten_with_the_last_node_that_has_it() -> None:
    images = Images()
    a, b = node("a", images={"web:1": 100}), node("b", images={"web:1": 200})
    images.replace(0, None, a)
    images.replace(1, None, b)
    images.replace(0, a, None)
    assert _sizes(images, "web:1") == [(100, {1})]
    images.replace(1, b, node("b"))
    assert _sizes(images, "web:1") == [None]


def test_rows_follow_every_change() -> None:
    images = Images()
    a = node("a", images={"web:1": 1})
    images.replace(3, None, a)
    state = images.find("web:1")
    assert state is not None
    assert state.rows_array().tolist() == [3]
    images.replace(5, None, node("b", images={"web:1": 1}))
    assert sorted(state.rows_array().tolist()) == [3, 5]
    images.replace(3, a, None)
    assert state.rows_array().tolist() == [5]


def test_all_names_of_an_image_count_and_an_image_without_names_is_nothing() -> None:
    images = (
        ContainerImage(names=("web:1", "web@sha256:abc"), size_bytes=10),
        ContainerImage(names=None, size_bytes=99),
        ContainerImage(names=("web:1",), size_bytes=20),
    )
    found = image_sizes(Node(status=NodeStatus(images=images)))
    assert found == {"web:1": 10, "web@sha256:abc": 10}
    assert image_sizes(None) == {}
