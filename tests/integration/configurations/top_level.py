"""Fields of the configuration itself: leader election, connection, backoff and the like."""

from __future__ import annotations

from .case import Case, case, fields

_VALUES: dict[str, tuple[object, ...]] = {
    "parallelism": (1, 16, 0, -1, 2**31 - 1, 2**31, 1.5, "4", None, True, [1], {"a": 1}),
    "percentageOfNodesToScore": (0, 1, 100, 101, -1, None, "50", 2**31, 1e2),
    "podInitialBackoffSeconds": (1, 10, 0, -1, None, 2**63 - 1, 2**63, "1"),
    "podMaxBackoffSeconds": (10, 1, 0, -1, None, 2**62),
    "enableProfiling": (True, False, None, "true", 1),
    "enableContentionProfiling": (True, False, None),
    "delayCacheUntilActive": (True, False, None, 0),
    "profiles": ([], None, {}, [None], ["a"], [[]]),
    "extenders": ([], None, {}, [None], ["a"]),
    "leaderElection": ({}, None, [], "yes"),
    "clientConnection": ([], "x"),
    "apiVersion": (
        "kubescheduler.config.k8s.io/v1beta3",
        "kubescheduler.config.k8s.io/v2",
        "v1",
        "a/b/c",
        1,
    ),
    "kind": ("Deployment", "NodeResourcesFitArgs", "KubeSchedulerProfile", 3),
    "metadata": ({},),
    "Profiles": ([],),
}

_ELECTION: dict[str, tuple[object, ...]] = {
    "leaderElect": (True, False, None, "true"),
    "leaseDuration": ("15s", "10s", "9s", "0s", "-1s", "", "1", "15", 15, None, "1h30m", "20.5s"),
    "renewDeadline": ("10s", "0s", "-1s", "15s", "16s", "2.4s", "2s", "x", None),
    "retryPeriod": ("2s", "0s", "-5s", "9s", "1ms", "1µs", None),
    "resourceLock": ("leases", "endpoints", "endpointsleases", "", None),
    "resourceName": ("mine", "", None, 1),
    "resourceNamespace": ("default", "", None),
    "identity": ("x",),
}

_CONNECTION: dict[str, tuple[object, ...]] = {
    "acceptContentTypes": ("application/json", "", None),
    "contentType": ("application/json", "", None),
    "qps": (0, 1, 50.5, 0.1, -1, 1e30, 1e39, "5", None, 123456789),
    "burst": (0, 1, -1, 2**31, 1.5, None),
    # Without a kubeconfig there is nothing to compare: only kube-scheduler wants one for this.
    "kubeconfig": (1,),
    "tokenFile": ("x",),
}


def _tables() -> dict[str, Case]:
    cases = {
        f"{name} {value!r}": fields({name: value})
        for name, values in _VALUES.items()
        for value in values
    }
    for name, values in _ELECTION.items():
        for value in values:
            cases[f"leaderElection.{name} {value!r}"] = case(leaderElection={name: value})
    for name, values in _CONNECTION.items():
        for value in values:
            cases[f"clientConnection.{name} {value!r}"] = case(connection={name: value})
    return cases


CASES: dict[str, Case] = {
    "nothing said": case(),
    **_tables(),
    "everything wrong at once": case(
        parallelism=0,
        percentageOfNodesToScore=200,
        podInitialBackoffSeconds=0,
        podMaxBackoffSeconds=-1,
        leaderElection={"leaseDuration": "-1s", "renewDeadline": "-1s", "retryPeriod": "-1s"},
        connection={"burst": -1},
        extenders=[{"urlPrefix": "", "prioritizeVerb": "p"}],
    ),
    "initial backoff above the largest": case(podInitialBackoffSeconds=11),
    "profiling off, contention not said": case(enableProfiling=False),
    "profiling off, contention on": case(enableProfiling=False, enableContentionProfiling=True),
    "a wrong election does not matter when it is off": case(
        leaderElection={"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "x"}
    ),
    "an election is switched off by a flag": case(
        "--leader-elect=false", leaderElection={"leaseDuration": "-1s"}
    ),
    "an election is made wrong by a flag": case(
        "--leader-elect-lease-duration=5s", leaderElection={"renewDeadline": "8s"}
    ),
    "flags outrank the election of the file": case(
        "--leader-elect-lease-duration=30s",
        "--leader-elect-renew-deadline=20s",
        "--leader-elect-retry-period=3s",
        "--leader-elect-resource-name=n",
        "--leader-elect-resource-namespace=m",
        leaderElection={"leaseDuration": "16s", "resourceName": "from-file"},
    ),
    "deprecated flags do not count with a file": case(
        "--profiling=false",
        "--contention-profiling=false",
        "--kubeconfig=absent",
        "--kube-api-qps=7",
        "--kube-api-burst=8",
        "--kube-api-content-type=application/json",
    ),
}
