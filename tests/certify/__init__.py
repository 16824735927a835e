"""The parity certificate: random clusters asked of the real kube-scheduler and of ours.

    seed ──> nodes, profile, pods ──> kube-scheduler on the real API server ──┐
                                  └─> ours on a copy of the cluster ──────────┴─> the same?
                                                                                    │ no
                                         the smallest manifests that show it <── shrinking

`python -m tests.certify --help` says how; docs/parity.md has what came of it.
"""
