"""Deciding beside another scheduler."""
