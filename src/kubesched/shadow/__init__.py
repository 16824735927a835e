"""Watching another scheduler at work, and deciding beside it without writing anything."""
