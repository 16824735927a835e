"""Schedulers for hours in a cluster that never rests: what they hold must not grow.

    churn ──> etcd, kube-apiserver ──> scheduler ──> /proc ──> samples ──> growth, its interval
      ^               │ watch                                    │
      └── bound pods ─┴──> seconds from creation to binding ─────┴──> JSON and SVG

Each scheduler has a control plane of its own, and gets the same churn at the same time.
`python -m tests.soak --help` says how; docs/reliability.md has what came of it.
"""
