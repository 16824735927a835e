"""Snapshots of a cluster, from a server, a file or manifests, for what-if questions."""
