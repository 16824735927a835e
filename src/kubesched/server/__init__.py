"""What an operator asks the running scheduler, over HTTPS: health, metrics, configuration.

    server = SecureServer(serving, authentication, authorization, Sources(…))   # serving.py
    async with server:
        …                       # answers, as long as this runs

Whoever puts the process together says in ``Sources`` (sources.py) what there is to show; the flags
come as the structs of options.py. The server knows nothing of scheduling.
"""
