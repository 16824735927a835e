"""Pods that wait for a node: in order, backing off, or parked until something changes."""
