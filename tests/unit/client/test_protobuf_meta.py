"""Finalizers of objects in protobuf form."""

from __future__ import annotations

import pytest

from kubesched.client.protobuf_meta import resource_version, with_finalizers
from kubesched.errors import ClientError


def field(number: int, content: bytes) -> bytes:
    tag, length = number << 3 | 2, len(content)
    size = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    return bytes([tag]) + size + content


def message(*finalizers: str, spec: bytes = b"\x12\x03abc", padding: int = 0) -> bytes:
    name = field(1, b"claim" + b"x" * padding)
    numbers = b"\x38\x96\x01" + b"\x41" + b"8" * 8 + b"\x4d" + b"4" * 4
    meta = name + field(6, b"17") + numbers + b"".join(field(14, e.encode()) for e in finalizers)
    return b"k8s\x00" + field(1, b"kind") + field(2, field(1, meta) + spec) + field(4, b"")


@pytest.mark.parametrize("padding", [0, 200])
def test_finalizers_are_replaced_and_nothing_else(padding: int) -> None:
    before = message("a", padding=padding)
    assert with_finalizers(before, ["a", "b"]) == message("a", "b", padding=padding)
    assert with_finalizers(before, []) == message(padding=padding)
    assert resource_version(before) == "17"


@pytest.mark.parametrize(
    "answer", [b"", b"{}", b"k8s\x00", b"k8s\x00\x12", message()[:-20], b"k8s\x00\x07"]
)
def test_what_cannot_be_read_is_an_error(answer: bytes) -> None:
    with pytest.raises(ClientError, match="API server's answer"):
        with_finalizers(answer, ["a"])
