"""Benchmarks beside kube-scheduler: workloads, control planes, schedulers, and reports."""
