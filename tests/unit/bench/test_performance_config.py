"""scheduler_perf's files, read into operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.bench import performance_config
from kubesched.bench.operations import (
    AllocateOnNodes,
    Barrier,
    BenchWorkload,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreateResourceDriver,
    DeletePods,
    LabelNodes,
    LabelNodesUniquely,
    Operation,
    Sleep,
    StartCollecting,
    StopCollecting,
    UpdateAny,
)
from kubesched.errors import ConfigError, UsageError

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: made-{{.Index}}-\n"

VOLUMES = (
    "nodeAllocatableStrategy: {nodeAllocatable: {volumes: 39}, "
    "csiNodeAllocatable: {driver: {count: 39}}, migratedPlugins: [old]}"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a template beside the one of the file."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "pod.yaml").write_text(POD)
    (tmp_path / "suite").mkdir()
    return tmp_path / "suite"


def read(folder: Path, text: str) -> tuple[performance_config.TestCase, ...]:
    path = folder / "performance-config.yaml"
    path.write_text(text)
    return performance_config.read(path)


def workload(folder: Path, operations: str, params: str = "{}", **more: str) -> BenchWorkload:
    """The only workload of a file with these operations."""
    extra = "".join(f"  {name}: {value}\n" for name, value in more.items())
    text = (
        f"- name: Case\n{extra}  workloadTemplate:\n{operations}\n"
        f"  workloads:\n  - name: small\n    params: {params}\n"
    )
    (built,) = performance_config.select(read(folder, text))
    return built


def operation(folder: Path, text: str, params: str = "{}") -> Operation:
    (found,) = workload(folder, f"  - {text}", params).operations
    return found


def test_parameters_are_put_in(folder: Path) -> None:
    built = workload(
        folder,
        "  - {opcode: createNodes, countParam: $initNodes}\n"
        "  - {opcode: createPods, countParam: $measurePods, collectMetrics: true}",
        "{initNodes: 5, measurePods: 20}",
    )

    nodes, pods = built.operations
    assert built.name == "Case/small"
    assert (built.node_count, built.pod_count) == (5, 20)
    assert isinstance(nodes, CreateNodes)
    assert nodes.template(0, 5)["status"]["allocatable"]["cpu"] == "4"
    assert isinstance(pods, CreatePods)
    assert pods.collect_metrics


def test_a_parameter_can_be_overridden_if_it_is_there(folder: Path) -> None:
    cases = read(
        folder,
        "- name: Case\n"
        "  workloadTemplate: [{opcode: createNodes, countParam: $initNodes}]\n"
        "  workloads: [{name: small, params: {initNodes: 5}}]\n",
    )

    (built,) = performance_config.select(cases, overrides={"initNodes": 9})

    assert built.node_count == 9
    with pytest.raises(UsageError, match="has no parameter measurePods to change"):
        performance_config.select(cases, overrides={"measurePods": 9})


def test_a_value_that_a_workload_forgets_can_be_given(folder: Path) -> None:
    cases = read(
        folder,
        "- name: Case\n"
        "  workloadTemplate: [{opcode: createPods, countParam: $measurePods}]\n"
        "  workloads: [{name: small}]\n",
    )

    with pytest.raises(ConfigError, match="there is no parameter '\\$measurePods'"):
        performance_config.select(cases)
    (built,) = performance_config.select(cases, overrides={"measurePods": 9})
    assert built.pod_count == 9


def test_templates_are_relative_to_the_file(folder: Path) -> None:
    pods = operation(
        folder, "{opcode: createPods, count: 1, podTemplatePath: ../templates/pod.yaml}"
    )

    assert isinstance(pods, CreatePods)
    assert pods.template(4, 9)["metadata"]["generateName"] == "made-4-"


def test_the_default_template_is_for_pods_that_have_none(folder: Path) -> None:
    built = workload(
        folder,
        "  - {opcode: createPods, count: 1}",
        defaultPodTemplatePath="../templates/pod.yaml",
    )

    (pods,) = built.operations
    assert isinstance(pods, CreatePods)
    assert pods.template(2, 9)["metadata"]["generateName"] == "made-2-"


def test_a_set_of_pods_is_one_operation_for_each_namespace(folder: Path) -> None:
    built = workload(
        folder,
        "  - opcode: createPodSets\n    countParam: $sets\n    namespacePrefix: team\n"
        "    createPodsOp: {opcode: createPods, countParam: $each}",
        "{sets: 3, each: 4}",
    )

    found = [(op.namespace, op.count) for op in built.operations if isinstance(op, CreatePods)]
    assert found == [("team-0", 4), ("team-1", 4), ("team-2", 4)]


@pytest.mark.parametrize(
    ("strategy", "preparation"),
    [
        (
            "labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}",
            LabelNodes(key="zone", values=("a", "b")),
        ),
        ("uniqueNodeLabelStrategy: {labelKey: id}", LabelNodesUniquely(key="id")),
        (
            VOLUMES,
            AllocateOnNodes(
                allocatable={"volumes": "39"},
                csi_drivers={"driver": {"count": 39}},
                migrated_plugins=("old",),
            ),
        ),
    ],
)
def test_strategies_for_nodes(
    folder: Path, strategy: str, preparation: LabelNodes | LabelNodesUniquely | AllocateOnNodes
) -> None:
    nodes = operation(folder, f"{{opcode: createNodes, count: 2, {strategy}}}")

    assert isinstance(nodes, CreateNodes)
    assert nodes.preparation == preparation


def test_a_steady_state_has_a_duration(folder: Path) -> None:
    steady = operation(
        folder,
        "{opcode: createPods, count: 2, steadyStateParam: $steady, durationParam: $for}",
        "{steady: true, for: 1m30s}",
    )
    once = operation(
        folder,
        "{opcode: createPods, count: 2, steadyStateParam: $steady, durationParam: $for}",
        "{steady: false, for: 10s}",
    )

    assert isinstance(steady, CreatePods)
    assert steady.steady_for_s == 90
    assert isinstance(once, CreatePods)
    assert once.steady_for_s == 0


def test_churn(folder: Path) -> None:
    churn = operation(
        folder,
        "{opcode: churn, mode: recreate, number: 2, intervalMilliseconds: 250, "
        "templatePaths: [../templates/pod.yaml]}",
    )

    assert isinstance(churn, Churn)
    assert (churn.mode, churn.number, churn.interval_s) == ("recreate", 2, 0.25)
    assert len(churn.templates) == 1


def test_the_other_operations(folder: Path) -> None:
    built = workload(
        folder,
        "  - {opcode: createNamespaces, prefix: team, count: 2}\n"
        "  - {opcode: createAny, namespace: a, templatePath: ../templates/pod.yaml}\n"
        "  - {opcode: updateAny, countParam: $n, templatePath: ../templates/pod.yaml,"
        " updatePerSecond: 10, subresources: [resize]}\n"
        "  - {opcode: deletePods, namespace: a, labelSelector: {k: v}, deletePodsPerSecond: 5,"
        " skipWaitToCompletion: true}\n"
        "  - {opcode: barrier, namespaces: [a], stageRequirement: Attempted}\n"
        "  - {opcode: sleep, duration: 250ms}\n"
        "  - {opcode: startCollectingMetrics, name: x, namespaces: [a], labelSelector: {k: v}}\n"
        "  - {opcode: stopCollectingMetrics}",
        "{n: 3}",
    )

    namespaces, created, updated, deleted, barrier, sleep, start, stop = built.operations
    assert namespaces == CreateNamespaces(prefix="team", count=2)
    assert isinstance(created, CreateAny)
    assert (created.namespace, created.count) == ("a", 1)
    assert isinstance(updated, UpdateAny)
    assert (updated.count, updated.per_second, updated.subresources) == (3, 10.0, ("resize",))
    assert deleted == DeletePods(namespace="a", labels={"k": "v"}, per_second=5.0, skip_wait=True)
    assert barrier == Barrier(namespaces=("a",), stage="Attempted")
    assert sleep == Sleep(duration_s=0.25)
    assert start == StartCollecting(name="x", namespaces=("a",), labels={"k": "v"})
    assert stop == StopCollecting()


def test_a_driver_of_devices(folder: Path) -> None:
    driver = operation(
        folder,
        "{opcode: createResourceDriver, driverName: d, nodes: gpu-*, maxClaimsPerNodeParam: $max}",
        "{max: 10}",
    )

    assert driver == CreateResourceDriver(driver="d", nodes="gpu-*", devices_per_node=10)


def test_gates_of_a_workload_outrank_those_of_its_test(folder: Path) -> None:
    text = (
        "- name: Case\n  featureGates: {A: true, B: true}\n"
        "  workloadTemplate: []\n"
        "  workloads: [{name: small, featureGates: {B: false}, params: {}}]\n"
    )

    (built,) = performance_config.select(read(folder, text))

    assert built.feature_gates == {"A": True, "B": False}


@pytest.mark.parametrize(
    ("fields", "threshold"),
    [
        ("threshold: 270", 270),
        ("threshold: {topic: 90, other: 35}", 35),
        ("threshold: 5, thresholdMetricSelector: {name: some_seconds, dataBucket: Perc99}", 0),
        ("threshold: 5, thresholdMetricSelector: {name: SchedulingThroughput}", 5),
        ("labels: [short]", 0),
    ],
)
def test_thresholds_of_pods_per_second(folder: Path, fields: str, threshold: float) -> None:
    text = (
        "- name: Case\n  workloadTemplate: []\n"
        f"  workloads: [{{name: small, params: {{}}, {fields}}}]\n"
    )

    (built,) = performance_config.select(read(folder, text))

    assert built.threshold == threshold


def test_a_test_and_a_workload_are_chosen_by_pattern(folder: Path) -> None:
    text = "".join(
        f"- name: {case}\n  workloadTemplate: []\n"
        "  workloads: [{name: 5Nodes, params: {}}, {name: 500Nodes, params: {}}]\n"
        for case in ("Basic", "Affinity")
    )
    cases = read(folder, text)

    chosen = performance_config.select(cases, test="B*", workload="5Nodes")

    assert [each.name for each in chosen] == ["Basic/5Nodes"]
    with pytest.raises(UsageError, match="there are the tests Basic, Affinity"):
        performance_config.select(cases, test="Volumes")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{opcode: fly}", "operation 0: there is no opcode 'fly'"),
        ("{count: 1}", "operation 0: it has no opcode"),
        ("{opcode: allocResourceClaims}", "namespace is missing"),
        ("{opcode: createNodes, cuont: 1}", "there is no field 'cuont'"),
        ("{opcode: createNodes, countParam: $missing}", "there is no parameter '$missing'"),
        ("{opcode: createNodes, count: -1}", "-1 is not a number of objects"),
        ("{opcode: createPods, count: 1, collectMetrics: 3}", "3 is neither true nor false"),
        (
            "{opcode: createPods, count: 1, collectMetrics: true, skipWaitToCompletion: true}",
            "exclude each other",
        ),
        ("{opcode: createPods, count: 1, steadyState: true}", "needs a duration"),
        ("{opcode: createNamespaces, count: 1}", "prefix is missing"),
        ("{opcode: churn, mode: sometimes, templatePaths: [x]}", "not create or recreate"),
        ("{opcode: churn, mode: recreate, templatePaths: [x]}", "recreate needs it"),
        ("{opcode: churn, mode: create}", "templatePaths is missing"),
        ("{opcode: createAny}", "templatePath is missing"),
        ("{opcode: createAny, templatePath: gone.yaml}", "gone.yaml: No such file"),
        ("{opcode: barrier, stageRequirement: Done}", "not Scheduled or Attempted"),
        ("{opcode: sleep, duration: soon}", "duration"),
        ("{opcode: startCollectingMetrics}", "namespaces is missing"),
    ],
)
def test_a_mistake_is_named_with_its_place(folder: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        operation(folder, text)

    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: b", "a list of test cases was expected"),
        ("- [", "this is not YAML"),
        ("- workloads: []", "test case 0: it has no name"),
        ("- {name: A, workloads: [], workloadTemplate: [], wat: 1}", "there is no field 'wat'"),
        ("- {name: A, workloads: [{}], workloadTemplate: []}", "a workload has no name"),
        ("- {name: A, workloads: 5, workloadTemplate: []}", "workloads: a list was expected"),
        ("- {name: A, featureGates: {X: 3}, workloads: [], workloadTemplate: []}", "not true or"),
    ],
)
def test_a_file_that_is_not_one_is_refused(folder: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read(folder, text)


def test_pods_of_groups_are_counted_by_group_and_know_their_parameters(folder: Path) -> None:
    (folder / "group.yaml").write_text("kind: PodGroup\nspec: {minCount: {{.size}}}\n")
    (folder / "pod.yaml").write_text("kind: Pod\nspec: {group: 'g-{{DivideInt .Index .size}}'}\n")
    operations = """
  - opcode: createPodGroups
    countParam: $groups
    namespace: ns
    templatePath: group.yaml
    templateParams: {size: $podsPerGroup}
  - opcode: createPods
    countParam: $groups
    countMultiplierParam: $podsPerGroup
    namespace: ns
    podTemplatePath: pod.yaml
    templateParams: {size: $podsPerGroup, cpu: $cpu|100m}
"""
    groups, pods = workload(folder, operations, "{groups: 4, podsPerGroup: 3}").operations

    assert isinstance(groups, CreateAny)
    assert (groups.count, groups.namespace) == (4, "ns")
    assert groups.template(1, 4)["spec"] == {"minCount": 3}
    assert isinstance(pods, CreatePods)
    assert pods.count == 12
    assert pods.template(11, 12)["spec"] == {"group": "g-3"}


def test_a_parameter_of_a_template_that_is_not_there_is_named(folder: Path) -> None:
    operations = "  - opcode: createPods\n    templateParams: {size: $podsPerGroup}"
    with pytest.raises(ConfigError, match=r"templateParams: size: there is no parameter") as wrong:
        workload(folder, operations)
    assert "$podsPerGroup" in str(wrong.value)
