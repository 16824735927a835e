"""Recordings: the scheduler's inputs and decisions, in files.

RecordedCluster, scheduler ──> Journal ──> Writer (a thread) ──> FILE, FILE.1, …
                                                                   └──> Recording (reader)
"""
