"""Finding a pod in a recording: by its name first, by its uid then."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ObjectError
from kubesched.history.mentions import TELL_EVERY, find
from kubesched.recording.entries import Put
from kubesched.recording.reader import Recording
from kubesched.recording.redaction import NameRedactor
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    async def script(lab: Lab) -> None:
        lab.put_node(node("web-1"))  # an object of another kind with the pod's name
        for number in range(6):
            lab.create_pod(pod(f"web-{number}", uid=f"u{number}"))
            await lab.turns(30)
        lab.next_file()
        lab.create_pod(pod("db", namespace="shop"))
        await lab.turns(30)
        lab.delete_pod(("default", "web-1"))
        lab.create_pod(pod("web-1", uid="u10"))
        await lab.turns(30)

    return record(tmp_path_factory.mktemp("recording") / "r", script, trouble=0.0, files=9)


def test_the_uids_of_a_name_and_their_first_and_last_entry(recording: Recording) -> None:
    found = find(recording, "default", "web-1")

    assert found.uids == ["u1", "u10"]
    entries = list(recording.state()[1])
    start = len(entries) - recording.entries
    first, last = entries[start + found.first], entries[start + found.last]
    assert first.pod.metadata.uid == "u1"  # type: ignore[union-attr]
    assert isinstance(last, Put)
    assert last.object.metadata.uid == "u10"
    assert found.last == recording.entries - 1


def test_a_uid_that_begins_like_another_is_not_it(recording: Recording) -> None:
    assert find(recording, "default", "web-0").last < find(recording, "default", "web-1").first


@pytest.mark.parametrize(
    ("namespace", "name", "said"),
    [
        ("default", "web-11", "; it has default/web-1, "),
        ("default", "db", "; it has shop/db"),
        ("default", "something-else", "r"),
    ],
)
def test_a_pod_that_is_not_there(
    recording: Recording, namespace: str, name: str, said: str
) -> None:
    with pytest.raises(ObjectError) as refused:
        find(recording, namespace, name)

    path = recording.parts[-1].path
    text = str(refused.value)
    assert text.startswith(f"pod {namespace}/{name} is not in the recording {path}")
    assert said in text
    assert text.endswith(str(path)) == (name == "something-else")


def test_a_redacted_recording_says_why_the_name_is_unknown(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.create_pod(pod("web-1"))

    with pytest.raises(ObjectError, match="it is redacted, and pods have pseudonyms"):
        find(record(tmp_path / "r", script, redactor=NameRedactor()), "default", "web-1")


def test_progress_is_told(recording: Recording) -> None:
    told: list[int] = []

    find(recording, "default", "web-1", progress=told.append)

    assert told[0] == 0
    assert all(each % TELL_EVERY == 0 for each in told)
