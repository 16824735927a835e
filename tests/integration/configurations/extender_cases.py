"""Extenders: every field and every rule."""

from __future__ import annotations

from .case import Case, JsonObject, case, disabled, extenders

_URL = "http://127.0.0.1:1/scheduler"


def _extender(**fields: object) -> JsonObject:
    return {"urlPrefix": _URL, **fields}


def _managing(*names: object, ignored: bool = False) -> JsonObject:
    resources = [{"name": name, "ignoredByScheduler": ignored} for name in names]
    return _extender(filterVerb="filter", managedResources=resources)


_FIELDS: dict[str, tuple[object, ...]] = {
    "filterVerb": ("filter", "", None, 1),
    "preemptVerb": ("preempt",),
    "bindVerb": ("bind",),
    "weight": (1, 0, -1, 2**63, "1", None),
    "enableHTTPS": (True, False, "yes"),
    "httpTimeout": ("30s", "0s", "-1s", "", 5, None, "forever"),
    "nodeCacheCapable": (True, None),
    "ignorable": (True, None),
    "managedResources": ([], None, {}),
    "tlsConfig": (
        {},
        None,
        {"insecure": True},
        {"serverName": "x"},
        {"caData": "not base64!"},
        {"caData": ""},
        {"caData": 1},
        {"certFile": "absent"},
        {"foo": 1},
    ),
    "prioritizeverb": ("x",),
}

CASES: dict[str, Case] = {
    **{
        f"an extender's {name} {value!r}": extenders(_extender(**{name: value}))
        for name, values in _FIELDS.items()
        for value in values
    },
    "an extender of nothing": extenders({}),
    "an extender without an address": extenders({"filterVerb": "filter"}),
    "an extender with every field": extenders(
        _extender(
            filterVerb="f",
            preemptVerb="p",
            prioritizeVerb="q",
            bindVerb="b",
            weight=5,
            enableHTTPS=False,
            httpTimeout="1m30s",
            nodeCacheCapable=True,
            managedResources=[{"name": "e.com/x", "ignoredByScheduler": True}],
            ignorable=True,
        )
    ),
    "priorities without a weight": extenders(_extender(prioritizeVerb="p")),
    "priorities with a negative weight": extenders(_extender(prioritizeVerb="p", weight=-5)),
    "priorities with a weight": extenders(_extender(prioritizeVerb="p", weight=5)),
    "two binders": extenders(_extender(bindVerb="a"), _extender(bindVerb="b")),
    "three binders": extenders(*(_extender(bindVerb=name) for name in "abc")),
    "a resource": extenders(_managing("e.com/x")),
    "a resource that is native": extenders(_managing("cpu")),
    "a resource of Kubernetes": extenders(_managing("kubernetes.io/x")),
    "a resource of a part of Kubernetes": extenders(_managing("a.kubernetes.io/x")),
    "a requested resource": extenders(_managing("requests.e.com/x")),
    "a resource that is none": extenders(_managing("e.com/-")),
    "a resource without a name": extenders(_managing("")),
    "a resource with a long name": extenders(_managing("e.com/" + "x" * 64)),
    "a resource with a domain too long for quota": extenders(_managing("e" * 250 + ".com/x")),
    "a resource twice": extenders(_managing("e.com/x", "e.com/x")),
    "a resource in two extenders": extenders(_managing("e.com/x"), _managing("e.com/x")),
    "an unknown field of a resource": extenders(
        _extender(managedResources=[{"name": "e.com/x", "ignored": True}])
    ),
    "an ignored resource": extenders(_managing("e.com/x", ignored=True)),
    "an ignored resource takes the place of others": case(
        extenders=[_managing("e.com/x", ignored=True)],
        profiles=[
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["a/b"]}}]}
        ],
    ),
    "an ignored resource without fit": case(
        extenders=[_managing("e.com/x", ignored=True)],
        profiles=[{"plugins": {"multiPoint": disabled("NodeResourcesFit")}}],
    ),
    "ignorable ones come last": extenders(
        _extender(filterVerb="a", ignorable=True), _extender(filterVerb="b")
    ),
}
