"""Hostile input: arbitrary bytes for everything that reads bytes of others.

    seeds ──> mutated ──> a target: bytes in, nothing out, or an AssertionError
                ^            └── new lines reached: the input becomes a seed   (atheris)
                └────────────────────────────────────────────────────────┘

Each module has the targets of one input and says what must hold of it. `make test` runs every
target briefly, on the same inputs each time; `make fuzz` for minutes or hours, guided by coverage
where atheris is available.
"""
