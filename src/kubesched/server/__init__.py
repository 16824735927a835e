"""Serves health, metrics and configuration of the scheduler over HTTPS.

    server = SecureServer(serving, authentication, authorization, Sources(…))   # serving.py
    async with server:
        …                       # serves while this runs

The composition root passes ``Sources`` (sources.py) with what to serve; flags are the structs of
options.py. The server does not depend on scheduling.
"""
