"""The entries of a recording: one JSON object per line.

    header        configuration, feature gates and version, to repeat decisions
    checkpoint    the whole state, as entries that lead to it, and the state of random generators
    entries       every change of the state, and every decision, in order
    seals         in between: a checksum of all lines since the last seal

A decision depends on the state, the pod, its profile and random numbers, not on the queue or the
time. So a reader that applies the entries one by one can repeat each decision at its place.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.resource import AllocationResult

#: Incremented whenever an older reader would misunderstand an entry: 2 has `Moved`.
FORMAT: Final = 2
#: The formats that can be read.
READABLE_FORMATS: Final = (1, 2)

#: The state of a `random.Random`.
RngState = tuple[int, tuple[int, ...], float | None]


class Randomness(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state of random generators, and of the node sampling."""

    #: breaks ties between equally good nodes
    ties: RngState
    #: where the next search for enough feasible nodes starts
    start: int = 0
    #: profile → plugin → attribute → state
    plugins: dict[str, dict[str, dict[str, RngState]]] = {}


class Gates(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Feature gates that differ from the defaults of their version."""

    explicit: dict[str, bool] = {}
    emulated_version: tuple[int, int] | None = None
    min_compatibility_version: tuple[int, int] | None = None


class Header(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The first line of each file."""

    kubesched_recording: int
    #: identifies the process: the same in all of its files
    run: str
    #: number of entries of that process before this file
    first_entry: int
    #: start of the recording, in seconds since the epoch; entries are relative to it
    start: float
    version: str
    kubernetes_version: str
    config: dict[str, Any]
    gates: Gates = Gates()
    #: plugin files, as given by flags
    plugin_files: tuple[str, ...] = ()
    redacted: bool = False


class Entry(
    Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, tag_field="is", kw_only=True
):
    """Base of all entries."""

    #: milliseconds since the recording began
    at: int = 0


# --- inputs ----------------------------------------------------------------------------------


class Put(Entry, frozen=True, kw_only=True, tag="put"):
    """An object was added or changed; pods are those on nodes."""

    kind: str
    object: Any


class Removed(Entry, frozen=True, kw_only=True, tag="removed"):
    """An object was removed."""

    kind: str
    name: str = ""
    namespace: str = ""
    #: of a pod
    uid: str = ""


class Pending(Entry, frozen=True, kw_only=True, tag="pending"):
    """A pending pod was added or changed."""

    pod: Pod


class Gone(Entry, frozen=True, kw_only=True, tag="gone"):
    """A pending pod was removed."""

    uid: str


class Configured(Entry, frozen=True, kw_only=True, tag="configured"):
    """The configuration was replaced."""

    config: dict[str, Any]
    randomness: Randomness


# --- actions ---------------------------------------------------------------------------------


class OfPod(Entry, frozen=True, kw_only=True):
    """An entry about a pending pod."""

    uid: str
    #: the pod object, unless it is unchanged
    pod: Pod | None = None


class Decided(OfPod, frozen=True, kw_only=True, tag="decided"):
    """The result of an attempt at a pod."""

    namespace: str
    name: str
    profile: str
    attempt: int = 0
    #: the chosen node, "" if none
    node: str = ""
    #: kube-scheduler's status code
    code: str = "Success"
    message: str = ""
    #: node to nominate the pod to, "" to clear its nomination, None for no change
    nominated: str | None = None
    #: uids of the victims
    victims: tuple[str, ...] = ()
    #: plugins that rejected the pod
    plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    evaluated: int = 0
    feasible: int = 0


class MemberDecided(
    Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True
):
    """The result of an attempt to schedule a group, for one member."""

    uid: str
    namespace: str
    name: str
    #: as in `Decided`
    node: str = ""
    code: str = "Success"
    message: str = ""
    nominated: str | None = None
    attempt: int = 0


class GroupDecided(Entry, frozen=True, kw_only=True, tag="groupDecided"):
    """The result of an attempt at a group."""

    #: podgroup, or compositepodgroup for the root of a tree
    group_kind: str
    namespace: str
    name: str
    profile: str
    #: uids of the members, in the order of the attempt
    uids: tuple[str, ...]
    #: pod objects that differ from their last recorded version
    pods: tuple[Pod, ...] = ()
    #: in the order in which the groups of a tree are decided
    members: tuple[MemberDecided, ...] = ()
    #: uids of the victims
    victims: tuple[str, ...] = ()


class Asking(OfPod, frozen=True, kw_only=True, tag="asking"):
    """An attempt begins that may call extenders, while the loop handles other events."""

    profile: str


class NodeRejection(Struct, frozen=True, array_like=True):
    """Why extenders reject a node."""

    code: int
    reasons: tuple[str, ...] = ()


class NodeVictims(Struct, frozen=True, array_like=True):
    """The victims on a node that extenders leave."""

    uids: tuple[str, ...]
    violations: int = 0


class Answered(Entry, frozen=True, kw_only=True, tag="answered"):
    """The response of extenders: to one of three calls, or a failure."""

    #: the nodes left, and why others were rejected
    feasible: tuple[str, ...] | None = None
    rejected: dict[str, NodeRejection] | None = None
    scores: dict[str, int] | None = None
    victims: dict[str, NodeVictims] | None = None
    error: str = ""


class Raised(OfPod, frozen=True, kw_only=True, tag="raised"):
    """An attempt at a pod raised an exception: a bug."""

    profile: str
    error: str
    attempt: int = 0


class Assumed(OfPod, frozen=True, kw_only=True, tag="assumed"):
    """A pod was assumed on a node."""

    node: str


class Forgotten(Entry, frozen=True, kw_only=True, tag="forgotten"):
    """An assumption was undone."""

    uid: str


class Returned(Entry, frozen=True, kw_only=True, tag="returned"):
    """A placed pod could not be bound."""

    uid: str
    message: str
    plugin: str = ""


class Moved(Entry, frozen=True, kw_only=True, tag="moved"):
    """Pending pods entered a part of the queue; several if they are members of one group.

    A pod that comes and is ready to be tried is not recorded: `Pending` implies it.
    """

    uids: tuple[str, ...]
    #: active, backoff, unschedulable, gated, or incomplete while a group is not known
    queue: str
    #: the event that moved them, by kube-scheduler's name
    event: str
    #: the PreEnqueue plugin that gates them
    plugin: str = ""


class Nominated(OfPod, frozen=True, kw_only=True, tag="nominated"):
    """A pod was nominated to a node."""

    node: str


class Unnominated(Entry, frozen=True, kw_only=True, tag="unnominated"):
    """A nomination was cleared."""

    uid: str


class VolumeAssumed(Entry, frozen=True, kw_only=True, tag="volumeAssumed"):
    """A volume or claim was assumed."""

    kind: str
    object: Any


class VolumeRestored(Entry, frozen=True, kw_only=True, tag="volumeRestored"):
    """The assumption of a volume or claim was undone."""

    kind: str
    name: str
    namespace: str = ""


class ClaimDecided(Entry, frozen=True, kw_only=True, tag="claimDecided"):
    """An allocation was assumed for a claim, on behalf of one pod."""

    uid: str
    allocation: AllocationResult


class ClaimDropped(Entry, frozen=True, kw_only=True, tag="claimDropped"):
    """The assumed allocation was written, or discarded for one pod."""

    uid: str
    written: bool = False


# --- file structure ----------------------------------------------------------------------------


class CheckpointEnd(Entry, frozen=True, kw_only=True, tag="checkpoint"):
    """All entries before are the state at the beginning of the file."""

    randomness: Randomness


class Seal(Entry, frozen=True, kw_only=True, tag="seal"):
    """The checksum of all lines since the last seal."""

    crc: int


class End(Entry, frozen=True, kw_only=True, tag="end"):
    """The file was closed properly."""


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
    | ClaimDecided
    | ClaimDropped
)
AnyEntry = (
    StateEntry
    | Configured
    | Asking
    | Answered
    | Decided
    | GroupDecided
    | Raised
    | Returned
    | Moved
    | CheckpointEnd
)
