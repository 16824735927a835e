"""Which devices may draw on a set of counters at the same time (gate DRADeviceCompatibilityGroups).

All devices that draw on a set must have a group in common. Devices without any group go together
with their like only, as if they had a group of their own.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.resource import DeviceCounterConsumption

#: Names of groups.
Groups = frozenset[str]

#: Not a name that a group can have.
NO_GROUP: Final[Groups] = frozenset({""})


def groups_of(consumption: DeviceCounterConsumption) -> Groups:
    """Return the groups of a device."""
    return frozenset(consumption.compatibility_groups) or NO_GROUP


def joined(common: Groups | None, groups: Groups) -> Groups | None:
    """Return the groups that are common to one more device; None if there are none then.

    `common` is None while no device draws on the set.
    """
    return groups if common is None else (common & groups) or None


def seeded(common: Groups | None, groups: Groups) -> Groups:
    """Return the same for devices that are allocated already, whether they go together or not.

    Of devices with and without groups, which only a slice that has changed can bring together, the
    first one decides.
    """
    if common is None:
        return groups
    if NO_GROUP in (common, groups):
        return common
    return common & groups
