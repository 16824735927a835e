"""The cluster as columns: one row a node, one array a property.

    informers, binding ──> Cluster ──> NodeTable (columns, change logs) ──> framework
                              └──────> PodInfo (compiled once, shares its PodSignature)

State and arithmetic only: no I/O, no clock, one writer.
"""
