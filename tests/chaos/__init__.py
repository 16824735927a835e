"""Schedulers through faults: of the network, of the API server, of etcd, of their own process.

    churn ───> kube-apiserver <── proxy that fails by seed ── scheduler, killed, stopped, restarted
                     │
                   etcd ──> history: every state it went through ──> judge ──> findings

`python -m tests.chaos --help` says how; docs/reliability.md has what came of it.
"""
