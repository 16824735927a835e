"""Decisions made again from a recording, under the same configuration or another."""
