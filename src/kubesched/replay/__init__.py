"""Recordings replayed: the same state, step by step, and each decision made again at its place.

Recording ──> State (a cluster) <── Decider: the scheduling cycle, and nothing around it
                                      └──> judged against what was decided then
"""
