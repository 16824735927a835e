"""The cluster as columns: one row a node, one array a property.

    informers, binding ──> Cluster ──> NodeTable (columns, change logs) ──> framework
                              └──────> PodInfo (compiled once, shares its PodSignature)

Everything here is state and arithmetic on it: no waiting, no clock, one writer.
"""
