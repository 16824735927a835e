"""The smallest objects that an API server accepts, one of each kind in the table of kinds."""

from __future__ import annotations

from typing import Any

from kubesched.kinds import KINDS

JsonObject = dict[str, Any]

DRIVER = "disk.example.com"
CONTAINER = {"name": "c", "image": "i"}
SELECTED = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}},
}
#: kind → what the API server requires of one, besides its name
MINIMAL: dict[str, JsonObject] = {
    "Node": {},
    "Namespace": {},
    "PriorityClass": {"value": 0},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "ReplicationController": {
        "spec": {"selector": {"a": "b"}, "template": SELECTED["template"], "replicas": 0}
    },
    "ReplicaSet": {"spec": SELECTED},
    "StatefulSet": {"spec": SELECTED},
    "PodDisruptionBudget": {},
    "StorageClass": {"provisioner": DRIVER},
    "CSINode": {"spec": {"drivers": []}},
    "CSIDriver": {"spec": {}},
    "CSIStorageCapacity": {"storageClassName": "c"},
    "VolumeAttachment": {
        "spec": {"attacher": DRIVER, "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
        }
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "DeviceClass": {"spec": {}},
    "ResourceSlice": {
        "spec": {
            "driver": DRIVER,
            "pool": {"name": "p", "resourceSliceCount": 1},
            "allNodes": True,
        }
    },
    "DeviceTaintRule": {
        "spec": {
            "deviceSelector": {"driver": DRIVER},
            "taint": {"key": "k", "effect": "NoSchedule"},
        }
    },
    "ResourceClaim": {"spec": {}},
    "ResourceClaimTemplate": {"spec": {"spec": {}}},
    "CompositePodGroup": {
        "spec": {
            "schedulingPolicy": {"basic": {}},
            "workloadRef": {"workloadName": "w", "templateName": "t"},
        }
    },
    "PodGroup": {"spec": {"schedulingPolicy": {"basic": {}}}},
    "CoscheduledGroup": {"spec": {"minMember": 1}},
    "Pod": {"spec": {"containers": [CONTAINER]}},
}
assert MINIMAL.keys() == KINDS.keys(), "a new kind: say what an API server requires of one"
