"""Replays recordings: the same state, entry by entry, and each decision made again in its place.

Recording ──> State (a cluster) <── Decider: the scheduling cycle, and nothing around it
                                      └──> judged against what was decided then
"""
