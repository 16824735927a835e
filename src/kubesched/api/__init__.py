"""Kubernetes objects as the scheduler reads them: typed, frozen, decoded straight from JSON.

Only fields that scheduling reads are named; everything else on the wire is skipped by the
decoder. The structs hold what the API server sent and compute nothing. Values that need parsing
(quantities, selectors) stay text here and are parsed once, when a pod's signature is compiled.
"""
