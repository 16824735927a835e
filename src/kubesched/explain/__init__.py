"""Explains why a pod is where it is, or pending, and what would help; on the real engine."""
