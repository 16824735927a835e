"""Tests of kubesched.embedded."""
