"""The table of metric families that the scheduler exports.

Names, labels, buckets and help texts are those of kube-scheduler v1.37, because dashboards and
alerts depend on them; our own have the prefix ``kubesched_``. ``metrics.recorder`` has an attribute
for each. Families that every Kubernetes component exports are in ``metrics.shared_table``.
"""

from __future__ import annotations

from typing import Final

from kubesched.metrics.shared_table import PROCESS, SHARED
from kubesched.metrics.spec import Stability, counter, exponential, gauge, histogram

STABLE: Final = Stability.STABLE
BETA: Final = Stability.BETA
ALPHA: Final = Stability.ALPHA

_ASYNC_PREEMPTION: Final = "SchedulerAsyncPreemption"
_ASYNC_API_CALLS: Final = "SchedulerAsyncAPICalls"
_EXTENDED_RESOURCE: Final = "DRAExtendedResource"
_BINDING_CONDITIONS: Final = "DRADeviceBindingConditions"
_WORKLOAD: Final = "GenericWorkload"
_TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"

#: from 1 ms to 16 s
_ATTEMPT: Final = exponential(0.001, 2, 15)
#: from 0.1 ms to 0.2 s
_EXTENSION_POINT: Final = exponential(0.0001, 2, 12)
#: from 10 µs to 22 ms, fine
_PLUGIN: Final = exponential(0.00001, 1.5, 20)
#: from 10 µs to 20 ms
_BATCHING: Final = exponential(0.00001, 2, 12)
#: from 10 ms to 87 minutes
_LONG: Final = exponential(0.01, 2, 20)
#: from 1 ms to 33 s
_PREEMPTION: Final = exponential(0.001, 2, 16)
#: from 1 to 1024
_DISRUPTIONS: Final = exponential(1.0, 2, 11)

SCHEDULING: Final = (
    # --- attempts -------------------------------------------------------------------------------
    counter(
        STABLE,
        "scheduler_schedule_attempts_total",
        "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could "
        "not be scheduled, while 'error' means an internal scheduler problem.",
        labels="result profile",
    ),
    histogram(
        STABLE,
        "scheduler_scheduling_attempt_duration_seconds",
        "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
        labels="result profile",
        buckets=_ATTEMPT,
    ),
    histogram(
        BETA,
        "scheduler_scheduling_algorithm_duration_seconds",
        "Scheduling algorithm latency in seconds",
        buckets=_ATTEMPT,
    ),
    histogram(
        BETA,
        "scheduler_pod_scheduling_sli_duration_seconds",
        "E2e latency for a pod being scheduled, from the time the pod enters the scheduling "
        "queue and might involve multiple scheduling attempts.",
        labels="attempts",
        buckets=_LONG,
    ),
    histogram(
        STABLE,
        "scheduler_pod_scheduling_attempts",
        "Number of attempts to successfully schedule a pod.",
        buckets=exponential(1.0, 2, 5),
    ),
    counter(
        ALPHA,
        "scheduler_pod_scheduled_after_flush_total",
        "Number of pods that were successfully scheduled after being flushed from "
        "unschedulableEntities due to timeout. This metric helps detect potential queueing hint "
        "misconfigurations or event handling issues.",
    ),
    # --- plugins --------------------------------------------------------------------------------
    histogram(
        STABLE,
        "scheduler_framework_extension_point_duration_seconds",
        "Latency for running all plugins of a specific extension point.",
        labels="extension_point status profile",
        buckets=_EXTENSION_POINT,
    ),
    histogram(
        BETA,
        "scheduler_plugin_execution_duration_seconds",
        "Duration for running a plugin at a specific extension point.",
        labels="plugin extension_point status",
        buckets=_PLUGIN,
    ),
    counter(
        BETA,
        "scheduler_plugin_evaluation_total",
        "Number of attempts to schedule pods by each plugin and the extension point (available "
        "only in PreFilter, Filter, PreScore, and Score).",
        labels="plugin extension_point profile",
    ),
    histogram(
        BETA,
        "scheduler_permit_wait_duration_seconds",
        "Duration of waiting on permit.",
        labels="result",
        buckets=_ATTEMPT,
    ),
    gauge(
        BETA,
        "scheduler_goroutines",
        "Number of running goroutines split by the work they do such as binding.",
        labels="operation",
    ),
    # --- queue and cache ------------------------------------------------------------------------
    gauge(
        STABLE,
        "scheduler_pending_pods",
        "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; "
        "'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in "
        "unschedulableEntities that the scheduler attempted to schedule and failed; 'gated' is the "
        "number of unschedulable pods that the scheduler never attempted to schedule because "
        "they are gated; 'incomplete' means number of pods in incompletePodGroupPods; 'pending' "
        "means number of pods in pendingPodGroupPods.",
        labels="queue",
    ),
    gauge(
        ALPHA,
        "scheduler_queued_entities",
        "Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for individual "
        "pods that are not members of any podgroup) by the queue type. 'active' means number of "
        "entities in activeQ; 'backoff' means number of entities in backoffQ; 'unschedulable' "
        "means number of entities in unschedulableEntities that the scheduler attempted to "
        "schedule and failed; 'gated' is the number of unschedulable entities that the scheduler "
        "never attempted to schedule because they are gated.",
        labels="queue type",
    ),
    counter(
        STABLE,
        "scheduler_queue_incoming_pods_total",
        "Number of pods added to scheduling queues by event and queue type.",
        labels="queue event",
    ),
    counter(
        ALPHA,
        "scheduler_queue_incoming_entities_total",
        "Number of scheduling entities added to scheduling queues by event, queue type, and "
        "entity type. Entity types are either 'pod' (for individual pods that are not members of "
        "any podgroup) or 'podgroup'.",
        labels="queue event type",
    ),
    gauge(
        BETA,
        "scheduler_unschedulable_pods",
        "The number of unschedulable pods broken down by plugin name. A pod will increment the "
        "gauge for all plugins that caused it to not schedule and so this metric have meaning "
        "only when broken down by plugin.",
        labels="plugin profile",
    ),
    gauge(
        ALPHA,
        "scheduler_inflight_events",
        "Number of events currently tracked in the scheduling queue.",
        labels="event",
    ),
    histogram(
        ALPHA,
        "scheduler_queueing_hint_execution_duration_seconds",
        "Duration for running a queueing hint function of a plugin.",
        labels="plugin event hint",
        buckets=_PLUGIN,
    ),
    counter(
        ALPHA,
        "scheduler_pre_queueing_hint_evaluations_total",
        "Number of PreQueueingHint evaluations, labeled by plugin and result (all_pods or "
        "narrowed).",
        labels="plugin result",
    ),
    histogram(
        ALPHA,
        "scheduler_event_handling_duration_seconds",
        "Event handling latency in seconds.",
        labels="event",
        buckets=_EXTENSION_POINT,
    ),
    gauge(
        ALPHA,
        "scheduler_cache_size",
        "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
        labels="type",
    ),
    gauge(
        ALPHA,
        "kubesched_unreadable_objects",
        "Number of objects whose newest version cannot be read, by kind. The last version that "
        "could be read stays in force.",
        labels="kind",
    ),
    counter(
        ALPHA,
        "kubesched_queue_checks_total",
        "Number of times a parked pod was evaluated again to verify that it does not fit.",
    ),
    counter(
        ALPHA,
        "kubesched_queue_missed_wakeups_total",
        "Number of parked pods that would fit although no event woke them, by the plugin whose "
        "queueing hint missed.",
        labels="plugin",
    ),
    counter(
        ALPHA,
        "kubesched_oversubscription_races_total",
        "Number of times a pod that another process bound took a resource of its node from enough "
        "to too little, because this scheduler placed pods there at the same time.",
    ),
    counter(
        ALPHA,
        "kubesched_binding_checks_total",
        "Number of times the node of a pod was checked again directly before the binding, by "
        "result: the pod 'fits', is 'rejected', or the check 'failed' because the node's pods "
        "could not be read.",
        labels="result",
    ),
    counter(
        ALPHA,
        "kubesched_plugin_failures_total",
        "Number of times a plugin that is not in-tree raised an exception, or gave an answer that "
        "cannot be used.",
        labels="plugin",
    ),
    counter(
        ALPHA,
        "kubesched_plugin_slow_total",
        "Number of scheduling cycles in which a plugin that is not in-tree exceeded its budget.",
        labels="plugin",
    ),
    counter(
        ALPHA,
        "kubesched_recording_bytes_total",
        "Number of bytes written to the files of --record.",
    ),
    counter(
        ALPHA,
        "kubesched_recording_failures_total",
        "Number of times recording ended before the scheduler did, because nothing more could be "
        "written.",
    ),
    # --- preemption -----------------------------------------------------------------------------
    counter(
        STABLE,
        "scheduler_preemption_attempts_total",
        "Total preemption attempts in the cluster till now",
    ),
    histogram(
        STABLE,
        "scheduler_preemption_victims",
        "Number of selected preemption victims for preemption initiated by a single pod",
        buckets=exponential(1.0, 2, 7),
    ),
    histogram(
        ALPHA,
        "scheduler_preemption_goroutines_duration_seconds",
        "Duration in seconds for running goroutines for the preemption.",
        labels="result",
        buckets=_LONG,
        gate=_ASYNC_PREEMPTION,
        deprecated_since="1.37.0",
    ),
    counter(
        ALPHA,
        "scheduler_preemption_goroutines_execution_total",
        "Number of preemption goroutines executed.",
        labels="result",
        gate=_ASYNC_PREEMPTION,
    ),
    histogram(
        ALPHA,
        "scheduler_preemption_evaluation_duration_seconds",
        "Duration in seconds for identifying the target preemption victims.",
        labels="preemptor result",
        buckets=_PREEMPTION,
        gate=_WORKLOAD,
    ),
    histogram(
        ALPHA,
        "scheduler_preemption_execution_duration_seconds",
        "Duration in seconds for preempting the target preemption victims. With async preemption "
        "enabled, preemption execution does not block the scheduling of other pods.",
        labels="preemptor result",
        buckets=_PREEMPTION,
        gate=_WORKLOAD,
    ),
    counter(
        ALPHA,
        "scheduler_preemption_pdb_violations_total",
        "Total number of pod disruption budget violations caused by preemption.",
        labels="preemptor",
        gate=_WORKLOAD,
    ),
    histogram(
        ALPHA,
        "scheduler_preemption_workload_disruptions",
        "Number of workload preemption units being preempted. A single preemption unit can be all "
        "pods in a pod group (in case of DisruptionMode=all), or a single pod (in case of "
        "DisruptionMode=single).",
        labels="preemptor",
        buckets=_DISRUPTIONS,
        gate=_WORKLOAD,
    ),
    counter(
        ALPHA,
        "scheduler_workload_preemption_attempts_total",
        "Total preemption attempts initiated by workload (including pod groups) in the cluster "
        "till now.",
        labels="result",
        gate=_WORKLOAD,
    ),
    histogram(
        ALPHA,
        "scheduler_workload_preemption_victims",
        "Number of pod preemption victims caused by workload preemption.",
        buckets=_DISRUPTIONS,
        gate=_WORKLOAD,
    ),
    # --- batching -------------------------------------------------------------------------------
    counter(
        ALPHA,
        "scheduler_batch_attempts_total",
        "Counts of results when we attempt to use batching.",
        labels="profile result",
    ),
    counter(
        ALPHA,
        "scheduler_batch_cache_flushed_total",
        "Counts of cache flushes by reason.",
        labels="profile reason",
    ),
    counter(
        ALPHA,
        "scheduler_batch_rescore_attempts_total",
        "Counts of rescore attempts during opportunistic batching.",
        labels="profile",
    ),
    histogram(
        ALPHA,
        "scheduler_batch_rescore_duration_seconds",
        "Latency for rescoring a node during opportunistic batching.",
        labels="profile",
        buckets=_BATCHING,
    ),
    histogram(
        ALPHA,
        "scheduler_get_node_hint_duration_seconds",
        "Latency for getting a node hint.",
        labels="hinted profile",
        buckets=_BATCHING,
    ),
    histogram(
        ALPHA,
        "scheduler_store_schedule_results_duration_seconds",
        "Latency for storing scheduling results.",
        labels="profile",
        buckets=_BATCHING,
    ),
    # --- asynchronous API calls ---------------------------------------------------------------
    counter(
        ALPHA,
        "scheduler_async_api_call_execution_total",
        "Total number of API calls executed by the async dispatcher.",
        labels="call_type result",
        gate=_ASYNC_API_CALLS,
    ),
    histogram(
        ALPHA,
        "scheduler_async_api_call_execution_duration_seconds",
        "Duration in seconds for executing API call in the async dispatcher.",
        labels="call_type result",
        buckets=_ATTEMPT,
        gate=_ASYNC_API_CALLS,
    ),
    gauge(
        ALPHA,
        "scheduler_pending_async_api_calls",
        "Number of API calls currently pending in the async queue.",
        labels="call_type",
        gate=_ASYNC_API_CALLS,
    ),
    # --- devices, volumes, pod groups -----------------------------------------------------------
    counter(
        ALPHA,
        "dynamic_resource_allocation_resourceclaim_creates_total",
        "Number of ResourceClaims creation requests, categorized by creation status, admin "
        "access, and owning API group and kind (either Pod or scheduling.k8s.io/PodGroup)",
        labels="status admin_access owner_api_group owner_api_kind",
        gate=_EXTENDED_RESOURCE,
    ),
    counter(
        ALPHA,
        "scheduler_dra_bindingconditions_allocations_total",
        "Number of allocations using devices with BindingConditions, counted per driver per "
        "scheduling attempt",
        labels="profile driver status",
        gate=_BINDING_CONDITIONS,
    ),
    histogram(
        ALPHA,
        "scheduler_dra_bindingconditions_wait_duration_seconds",
        "Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
        labels="profile driver status",
        buckets=exponential(0.1, 2, 14),
        gate=_BINDING_CONDITIONS,
    ),
    counter(
        ALPHA,
        "scheduler_volume_binder_cache_requests_total",
        "Total number for request volume binding cache",
        labels="operation",
    ),
    counter(
        ALPHA,
        "scheduler_volume_scheduling_stage_error_total",
        "Volume scheduling stage error count",
        labels="operation",
    ),
    counter(
        ALPHA,
        "scheduler_podgroup_schedule_attempts_total",
        "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod "
        "group could not be scheduled, while 'error' means an internal scheduler problem.",
        labels="result profile",
        gate=_WORKLOAD,
    ),
    histogram(
        ALPHA,
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        "Pod group scheduling attempt latency in seconds",
        labels="result profile",
        buckets=_ATTEMPT,
        gate=_WORKLOAD,
    ),
    histogram(
        ALPHA,
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        "Pod group scheduling algorithm latency in seconds",
        buckets=_ATTEMPT,
        gate=_WORKLOAD,
    ),
    counter(
        ALPHA,
        "scheduler_generated_placements_total",
        "Number of candidate placements generated when scheduling pod groups.",
        labels="profile",
        gate=_TOPOLOGY,
    ),
    counter(
        ALPHA,
        "scheduler_placement_evaluations_total",
        "Number of candidate placements evaluated when scheduling pod groups, by result. "
        "'feasible' means the pod group fit into the placement, while 'infeasible' means it did "
        "not.",
        labels="result profile",
        gate=_TOPOLOGY,
    ),
    histogram(
        ALPHA,
        "scheduler_placement_evaluation_duration_seconds",
        "Latency in seconds of evaluating a single candidate placement when scheduling pod "
        "groups, by result. 'feasible' means the pod group fit into the placement, while "
        "'infeasible' means it did not.",
        labels="result profile",
        buckets=_ATTEMPT,
        gate=_TOPOLOGY,
    ),
)

#: The metrics of ``/metrics``.
FAMILIES: Final = (*SCHEDULING, *SHARED, *PROCESS)
