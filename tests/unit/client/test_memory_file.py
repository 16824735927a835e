"""Files for secrets."""

from __future__ import annotations

from pathlib import Path

from kubesched.client.memory_file import memory_file, path_of


def test_the_file_can_be_opened_again_by_its_path_until_it_is_closed() -> None:
    with memory_file() as file:
        file.write(b"secret")
        file.flush()
        path = Path(path_of(file))
        assert path.read_bytes() == b"secret"

    assert not path.exists() or path.read_bytes() != b"secret"
