"""Recordings: what the scheduler saw and decided, in files.

RecordedCluster, scheduler ──> Journal ──> Writer (a thread) ──> FILE, FILE.1, …
                                                                   └──> Recording (reader)
"""
