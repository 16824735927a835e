"""KubeSchedulerConfiguration v1 and feature gates: decode strictly, default, validate."""
