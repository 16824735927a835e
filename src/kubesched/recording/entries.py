"""What a recording consists of: one JSON object a line, each of one of these forms.

    header        what is needed to decide again: configuration, feature gates, version
    checkpoint    the whole state, as the same entries that lead to it, and where randomness stands
    entries       everything that changed the state, and every decision, in the order of the loop
    seals         in between: a checksum of all lines since the last one

A decision depends on the state, the pod, its profile and randomness, not on the queue or the time.
So whoever applies the entries one by one can make each decision again at its place.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kubesched.api.core import Pod

#: Changes whenever a reader of an older version would misunderstand an entry.
FORMAT: Final = 1

#: The state of a `random.Random`.
RngState = tuple[int, tuple[int, ...], float | None]


class Randomness(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where everything stands that is random, or depends on what was looked at before."""

    #: settles ties between equally good nodes
    ties: RngState
    #: where the next search for enough feasible nodes starts
    start: int = 0
    #: profile → plugin → attribute → state
    plugins: dict[str, dict[str, dict[str, RngState]]] = {}


class Gates(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Feature gates, as far as they are not the defaults of their version."""

    explicit: dict[str, bool] = {}
    emulated_version: tuple[int, int] | None = None
    min_compatibility_version: tuple[int, int] | None = None


class Header(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The first line of each file."""

    kubesched_recording: int
    #: the same in all files of one process
    run: str
    #: entries of that process before this file
    first_entry: int
    #: when the recording began, in seconds since the epoch; entries count from then
    start: float
    version: str
    kubernetes_version: str
    config: dict[str, Any]
    gates: Gates = Gates()
    #: files with plugins, as flags named them
    plugin_files: tuple[str, ...] = ()
    redacted: bool = False


class Entry(
    Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, tag_field="is", kw_only=True
):
    """Something that happened."""

    #: milliseconds since the recording began
    at: int = 0


# --- what was seen ----------------------------------------------------------------------------


class Put(Entry, frozen=True, kw_only=True, tag="put"):
    """An object came or changed; a pod among them is on a node."""

    kind: str
    object: Any


class Removed(Entry, frozen=True, kw_only=True, tag="removed"):
    """An object went."""

    kind: str
    name: str = ""
    namespace: str = ""
    #: of a pod
    uid: str = ""


class Pending(Entry, frozen=True, kw_only=True, tag="pending"):
    """A pod that wants a node came or changed."""

    pod: Pod


class Gone(Entry, frozen=True, kw_only=True, tag="gone"):
    """A pod that wanted a node went."""

    uid: str


class Configured(Entry, frozen=True, kw_only=True, tag="configured"):
    """Another configuration took the place of the one before."""

    config: dict[str, Any]
    randomness: Randomness


# --- what was done ----------------------------------------------------------------------------


class OfPod(Entry, frozen=True, kw_only=True):
    """Something about a pod that wants a node."""

    uid: str
    #: the pod itself, unless it is as it was last seen
    pod: Pod | None = None


class Decided(OfPod, frozen=True, kw_only=True, tag="decided"):
    """An attempt at a pod came to a result."""

    namespace: str
    name: str
    profile: str
    attempt: int = 0
    #: the node chosen, "" if there is none
    node: str = ""
    #: kube-scheduler's status code
    code: str = "Success"
    message: str = ""
    #: node to nominate the pod to, "" to take a nomination back, None to leave it
    nominated: str | None = None
    #: uids of those who are to make room
    victims: tuple[str, ...] = ()
    #: who turned the pod away
    plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    evaluated: int = 0
    feasible: int = 0


class Asking(OfPod, frozen=True, kw_only=True, tag="asking"):
    """An attempt at a pod begins which may ask extenders, while other things happen."""

    profile: str


class Reason(Struct, frozen=True, array_like=True):
    """Why extenders reject a node."""

    code: int
    reasons: tuple[str, ...] = ()


class NodeVictims(Struct, frozen=True, array_like=True):
    """Whom extenders leave to be evicted from a node."""

    uids: tuple[str, ...]
    violations: int = 0


class Answered(Entry, frozen=True, kw_only=True, tag="answered"):
    """Extenders answered, to one of three questions, or not at all."""

    #: which nodes are left, and why others are not
    feasible: tuple[str, ...] | None = None
    rejected: dict[str, Reason] | None = None
    scores: dict[str, int] | None = None
    victims: dict[str, NodeVictims] | None = None
    error: str = ""


class Raised(OfPod, frozen=True, kw_only=True, tag="raised"):
    """An attempt at a pod broke off: a bug."""

    profile: str
    error: str
    attempt: int = 0


class Assumed(OfPod, frozen=True, kw_only=True, tag="assumed"):
    """A pod counts on a node from now on."""

    node: str


class Forgotten(Entry, frozen=True, kw_only=True, tag="forgotten"):
    """A pod does not count on its node any more."""

    uid: str


class Returned(Entry, frozen=True, kw_only=True, tag="returned"):
    """A pod that had a node could not be bound to it."""

    uid: str
    message: str
    plugin: str = ""


class Nominated(OfPod, frozen=True, kw_only=True, tag="nominated"):
    """A pod was promised a node."""

    node: str


class Unnominated(Entry, frozen=True, kw_only=True, tag="unnominated"):
    """The promise was taken back, or kept."""

    uid: str


class VolumeAssumed(Entry, frozen=True, kw_only=True, tag="volumeAssumed"):
    """A volume or claim shows as it is to be, until it is written."""

    kind: str
    object: Any


class VolumeRestored(Entry, frozen=True, kw_only=True, tag="volumeRestored"):
    """A volume or claim shows as it is again."""

    kind: str
    name: str
    namespace: str = ""


# --- what holds a file together ---------------------------------------------------------------


class CheckpointEnd(Entry, frozen=True, kw_only=True, tag="checkpoint"):
    """All lines before are the state at the beginning of the file."""

    randomness: Randomness


class Seal(Entry, frozen=True, kw_only=True, tag="seal"):
    """The checksum of all lines since the last seal."""

    crc: int


class End(Entry, frozen=True, kw_only=True, tag="end"):
    """The file was closed in good order."""


StateEntry = (
    Put
    | Removed
    | Pending
    | Gone
    | Assumed
    | Forgotten
    | Nominated
    | Unnominated
    | VolumeAssumed
    | VolumeRestored
)
AnyEntry = StateEntry | Configured | Asking | Answered | Decided | Raised | Returned | CheckpointEnd
