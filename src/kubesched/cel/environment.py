"""The environment of device selectors: functions, types and the variable ``device``.

It is the one of Kubernetes 1.37 for expressions that are stored in objects: it does not depend on
feature gates, so that an object that was once accepted stays usable. What a device has not, because
a gate is off, is empty.
"""

from __future__ import annotations

from typing import Final

from kubesched.cel import types
from kubesched.cel.functions import merged
from kubesched.cel.library import (
    authorization,
    formats,
    lists,
    networks,
    optionals,
    quantities,
    regex,
    semvers,
    sets,
    standard,
    strings,
    urls,
)
from kubesched.cel.types import Type

#: Functions by name. Overloads are tried in this order of libraries.
FUNCTIONS: Final = merged(
    [
        *standard.FUNCTIONS,
        *urls.FUNCTIONS,
        *regex.FUNCTIONS,
        *authorization.FUNCTIONS,
        *optionals.FUNCTIONS,
        *quantities.FUNCTIONS,
        *strings.FUNCTIONS,
        *sets.FUNCTIONS,
        *networks.FUNCTIONS,
        *formats.FUNCTIONS,
        *semvers.FUNCTIONS,
        *lists.FUNCTIONS,
    ]
)

#: The fields of ``device``.
DEVICE_FIELDS: Final = {
    "driver": types.STRING,
    "allowMultipleAllocations": types.BOOL,
    "attributes": types.map_of(types.STRING, types.map_of(types.STRING, types.DYN)),
    "capacity": types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY)),
}

#: Names that stand for types, and the types of values that they are.
TYPE_NAMES: Final[dict[str, Type]] = {
    **{
        type_.name: type_
        for type_ in (
            types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL,
            types.STRING, types.TIMESTAMP, types.TYPE, types.UINT, types.IP, types.CIDR,
            types.OPTIONAL,
        )
    },
    "list": types.list_of(types.param("A")),
    "map": types.map_of(types.param("A"), types.param("B")),
}  # fmt: skip
