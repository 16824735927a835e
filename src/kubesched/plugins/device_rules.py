"""What the feature gates decide about the allocation of devices."""

from __future__ import annotations

from msgspec import Struct

from kubesched.cluster.device_pools import PoolRules
from kubesched.config.features import FeatureGates


class SearchRules(Struct, frozen=True):
    """What the feature gates decide about the allocation of devices.

    kube-scheduler has three allocators, and takes the first one that supports all features that are
    on: a *stable* one, one with the features that are beta, and one with those that are alpha, the
    *experimental* one. They differ in details beyond those features.
    """

    partitionable: bool = True
    consumable: bool = True
    binding_conditions: bool = True
    fractional: bool = False
    list_attributes: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False
    optional_node_operations: bool = False

    @classmethod
    def of(cls, gates: FeatureGates) -> SearchRules:
        """Read them off the gates."""
        return cls(
            partitionable=gates.enabled("DRAPartitionableDevices"),
            consumable=gates.enabled("DRAConsumableCapacity"),
            binding_conditions=gates.enabled("DRADeviceBindingConditions")
            and gates.enabled("DRAResourceClaimDeviceStatus"),
            fractional=gates.enabled("DRAFractionalCapacityRange"),
            list_attributes=gates.enabled("DRAListTypeAttributes"),
            derived_attributes=gates.enabled("DRADerivedAttributes"),
            compatibility_groups=gates.enabled("DRADeviceCompatibilityGroups"),
            optional_node_operations=gates.enabled("DRAOptionalNodeOperations"),
        )

    @property
    def is_experimental(self) -> bool:
        """Whether the experimental allocator is taken."""
        return (
            self.list_attributes
            or self.derived_attributes
            or self.compatibility_groups
            or self.optional_node_operations
        )

    @property
    def is_stable(self) -> bool:
        """Whether the stable allocator is used: without capacities and distinct values.

        There, a pool is seen wherever its counters are, even if none of its devices can be used.
        """
        return not (
            self.is_experimental or self.consumable or self.binding_conditions or self.fractional
        )

    @property
    def of_pools(self) -> PoolRules:
        """The rules for pools under the same gates."""
        skips = None
        if self.is_experimental:
            skips = self.optional_node_operations
        return PoolRules(
            partitionable=self.partitionable,
            counters_everywhere=self.is_stable,
            compatibility_groups=self.compatibility_groups,
            skips_operations=skips,
        )
