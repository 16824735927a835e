"""The scheduler: from events to decisions to bindings.

    informers ──> handlers ──> cluster, then queue
    queue ──> loop ──> cycle ──> assume ──> binding (async) ──> API server
                          └────> failure: requeue, condition, event

Only `loop`, `binding`, `failure` and `api_calls` wait for anything.
"""
