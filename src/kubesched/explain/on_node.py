"""Why a pod is not on a certain node: its rejection there, or the points that the node lost."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubesched.explain.report import (
    ExplainedScore,
    Explanation,
    NodeAnswer,
    NodeExplanation,
    ScoreComparison,
)


def on_node(said: Explanation, node: str) -> NodeExplanation:
    """Return what an explanation says of one of its nodes."""
    answer = next(each for each in said.nodes if each.node == node)
    if not answer.feasible:
        return _rejected(said, answer)
    scores = {each.node: each for each in said.scores}
    if node not in scores:
        # Scoring failed, or the profile does not score.
        return _about(said, node, outcome="Tied", text=said.message or "no scores tell nodes apart")
    winner = said.current_node if said.current_node in scores else said.best_nodes[0]
    if winner == node:
        winner = next((each.node for each in said.scores if each.node != node), "")
    return _compared(said, scores[node], scores.get(winner))


def _about(said: Explanation, node: str, *, outcome: str, text: str) -> NodeExplanation:
    return NodeExplanation(
        pod=said.pod,
        node=node,
        scheduler_name=said.scheduler_name,
        outcome=outcome,
        text=text,
        current_node=said.current_node,
        notes=(*_not_alone(said), *said.notes),
    )


def _not_alone(said: Explanation) -> Iterator[str]:
    """Say what else decides about the pod, beside this node."""
    if said.group is not None:
        yield f"the pod is scheduled with its group {said.group.group}: {said.group.text}"
    elif said.outcome in ("Gated", "Unclaimed"):
        yield f"{said.outcome.lower()}: {said.message}"


def _rejected(said: Explanation, answer: NodeAnswer) -> NodeExplanation:
    count = len(answer.reasons)
    text = f"{answer.node} rejects it for {count} reason{'' if count == 1 else 's'}"
    told = _about(said, answer.node, outcome="Rejected", text=text)
    of_pod = {(each.plugin, each.text): each for each in said.pod_reasons}
    # Those of the pod as a whole have their details there.
    reasons = (of_pod.get((each.plugin, each.text), each) for each in answer.reasons)
    return replace(told, reasons=tuple(reasons))


def _compared(
    said: Explanation, own: ExplainedScore, other: ExplainedScore | None
) -> NodeExplanation:
    node = own.node
    if other is None:
        return _about(said, node, outcome="Best", text=f"{node} is the only node that it fits on")
    difference = own.total - other.total
    is_own = node == said.current_node
    outcome = "Best" if difference > 0 else "Tied" if not difference else "Outscored"
    told = _about(said, node, outcome=outcome, text=_text(said, own, other, is_own=is_own))
    differences = (
        ScoreComparison(
            plugin,
            weight,
            other.plugins[plugin].weighted,
            own.plugins[plugin].weighted,
            own.plugins[plugin].weighted - other.plugins[plugin].weighted,
        )
        for plugin, weight in said.weights.items()
    )
    ranked = sorted(differences, key=lambda each: (each.difference, each.plugin))
    return replace(
        told,
        winner=other.node,
        winner_points=other.total,
        node_points=own.total,
        scores=tuple(ranked),
    )


def _text(said: Explanation, own: ExplainedScore, other: ExplainedScore, *, is_own: bool) -> str:
    points = abs(own.total - other.total)
    by = f"by {points} point{'' if points == 1 else 's'}"
    if own.total == other.total:
        return f"{own.node} is as good as {other.node}: ties are broken at random"
    if own.total > other.total:
        if other.node == said.current_node:
            return f"{own.node} would win against {other.node} now, {by}: the cluster has changed"
        where = "is the best for it" if own.node in said.best_nodes else "wins"
        return f"{own.node} {where}, {by} over {other.node}"
    worst = min(
        said.weights, key=lambda each: own.plugins[each].weighted - other.plugins[each].weighted
    )
    lost = other.plugins[worst].weighted - own.plugins[worst].weighted
    than = " now" if is_own else ""
    return f"{own.node} loses{than} {by} to {other.node}, most of all {lost} of {worst}"
