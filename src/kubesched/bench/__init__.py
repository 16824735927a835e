"""Side by side with kube-scheduler: workloads, control planes, schedulers, and what came of it."""
