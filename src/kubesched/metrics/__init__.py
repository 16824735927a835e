"""All exported metrics, and their recording.

    table (names, types, labels, buckets) ──▶ recorder.Metrics ── render() ──▶ text for Prometheus
                                                  ▲
              queue · cycle · binding · client ───┘  ``metrics.schedule_attempts.labels(…).inc()``

A series is a plain Python object that its recorder looks up once and keeps: recording is an
addition, without a lock, because one thread owns all state. Values that exist anyway (queue
lengths, cache size) are not recorded: a function reads them at a scrape.
"""
