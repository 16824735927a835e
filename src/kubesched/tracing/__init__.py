"""OpenTelemetry traces of attempts: what the scheduler did for a pod, and how long it took.

    AttemptTracer (an observer) ──> SpanRecord ──> SpanExporter, a thread ──> OTLP over gRPC

    Attempt
    ├── SchedulingCycle ──> PreFilter, Filter, … ──> one span for each plugin that did any work
    └── BindingCycle ─────> PreBind, Bind, … and each request to the API server

Nothing of this is imported unless ``--tracing-config-file`` is given.
"""
