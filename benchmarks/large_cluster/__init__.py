"""The live path on a very large cluster, in one process: memory, latency, CPU.

objects.py       nodes, applications and pods, as JSON
server.py        an API server in memory: lists, watches, and answers to writes
surroundings.py  what happens: pods arrive, run and end; nodes come, go and change
measuring.py     durations of decisions and of steps of the event loop, and where they go
__main__.py      puts them together, and reports
"""
