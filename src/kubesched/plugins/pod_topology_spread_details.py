"""The counts behind rejections by topology spread constraints, domain by domain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.detail import Detail, listed

if TYPE_CHECKING:
    from kubesched.plugins.pod_topology_spread import HardDomains

#: With more domains, the counts of all domains are left out.
_MOST_COUNTS: Final = 32


def uneven_domains(domains: HardDomains, nodes: NodeRows, reason: str) -> Iterator[Detail]:
    """Return the skew of each domain that would be too full, the least full first."""
    constraint, rows = domains.constraint, nodes.row_numbers()
    key, counts = constraint.topology_key, domains.counts
    values = nodes.table.label_column(key).vocabulary.values
    smallest = domains.smallest(counts)
    ids = domains.everywhere.ids[rows]
    usable = np.flatnonzero(domains.usable.there).tolist()
    lowest = listed(str(values[each]) for each in usable if counts[each] == smallest)
    of_all = {str(values[each]): int(counts[each]) for each in usable}
    too_few = domains.usable.number < constraint.min_domains
    least = f"the smallest count is {smallest}" + (f" (in {lowest})" if lowest else "")
    if too_few:
        number = domains.usable.number
        least = f"the smallest counts as 0 with {number} of minDomains {constraint.min_domains}"
    selector = "" if constraint.selection is None else str(constraint.selection.selector)
    here = np.unique(ids[domains.too_full().take(ids)])
    for domain in sorted(here[here > 0].tolist(), key=lambda each: int(counts[each])):
        count = int(counts[domain])
        skew = count + int(constraint.counts_itself) - smallest
        yield Detail(
            f"{key}={values[domain]} has {count} matching {selector or 'no selector'}, {least}: "
            f"skew {skew} with this pod, maxSkew {constraint.max_skew}",
            {
                "topologyKey": key,
                "domain": values[domain],
                "count": count,
                "min": smallest,
                "skew": skew,
                "maxSkew": constraint.max_skew,
                "selector": selector,
                **({"counts": of_all} if len(of_all) <= _MOST_COUNTS else {}),
            },
            reason,
            tuple(rows[ids == domain].tolist()),
        )


def unlabelled(domains: HardDomains, nodes: NodeRows, reason: str) -> Iterator[Detail]:
    """Return the nodes that lack the label of a constraint."""
    rows = nodes.row_numbers()
    without = rows[domains.everywhere.ids[rows] == 0]
    if len(without):
        key = domains.constraint.topology_key
        yield Detail(
            f"the node has no label {key}", {"topologyKey": key}, reason, tuple(without.tolist())
        )
