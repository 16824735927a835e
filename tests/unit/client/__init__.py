"""Tests of the API client, against small servers on loopback."""
