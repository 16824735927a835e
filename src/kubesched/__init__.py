"""kube-scheduler in Python: the component that gives every Kubernetes pod its node."""

__version__ = "0.1.0"

#: The Kubernetes release whose kube-scheduler is reproduced.
KUBERNETES_VERSION = "v1.37.1"
