"""The parity certificate: random cases asked of the real kube-scheduler and of ours.

    theme, seed ──> case ──> kube-scheduler on the real API server ──┐
                        └──> ours ───────────────────────────────────┴─> the same?
                                                                           │ no
                        documented (docs/differences.md)? <────────────────┤
                        the smallest manifests that show it <── shrinking ─┘

A theme (`theme.Theme`) draws cases from a seed, creates them, reads both outcomes, compares them,
and shrinks what differs:

    placement, preemption, volumes, devices   pods one after the other on a cluster that fills up
                                              (`one_by_one`); ours is asked on a copy of it
    groups                                    both schedulers, each with an API server of its own
    configurations                            what is refused, what is written, what is placed

`python -m tests.certify --help` says how to run it; docs/parity.md has what came of it.
"""
