"""Every series that the scheduler exports, and how it is recorded.

    table (names, types, labels, buckets) ──▶ recorder.Metrics ── render() ──▶ text for Prometheus
                                                  ▲
              queue · cycle · binding · client ───┘  ``metrics.schedule_attempts.labels(…).inc()``

A series is a plain Python object that its recorder looks up once and keeps: recording is an
addition, without a lock, because one thread owns all state. What somebody else counts anyway (the
lengths of queues, the size of the cache) is not recorded at all: a function is read at a scrape.
"""
