"""An exposition as its readers see it, read with the parser of ``prometheus_client``."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families


class Exposed:
    """Families by the names in the text; a counter's name need not end in ``_total``."""

    def __init__(self, raw: bytes) -> None:
        self.text = raw.decode()
        #: family → text behind its name, as it stands there
        self.helps = self._comments("# HELP ")
        self.types = self._comments("# TYPE ")
        self._parsed = {metric.name: metric for metric in text_string_to_metric_families(self.text)}

    def samples(self, name: str) -> list[dict[str, str]]:
        """The labels of all samples of a family."""
        return [dict(sample.labels) for sample in self._metric(name).samples]

    def label_names(self, name: str) -> set[str]:
        """All labels of a family but the one that names buckets."""
        return {label for labels in self.samples(name) for label in labels} - {"le"}

    def bounds(self, name: str) -> list[str]:
        """The bounds of a histogram, as they are spelled."""
        return [sample["le"] for sample in self.samples(name) if "le" in sample]

    def value(self, sample_name: str, **labels: str) -> float | None:
        """The value of one sample, None if it is not there."""
        for line in self.text.splitlines():
            if line.startswith((f"{sample_name} ", f"{sample_name}{{")):
                for metric in text_string_to_metric_families(line + "\n"):
                    if metric.samples[0].labels == labels:
                        return float(metric.samples[0].value)
        return None

    def series(self, sample_name: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each sample of a name, such as a histogram's ``…_count``."""
        return [
            (dict(sample.labels), float(sample.value))
            for metric in self._parsed.values()
            for sample in metric.samples
            if sample.name == sample_name
        ]

    def _metric(self, name: str) -> Metric:
        if self.types[name] == "counter":
            name = name.removesuffix("_total")
        return self._parsed[name]

    def _comments(self, start: str) -> dict[str, str]:
        lines = [line for line in self.text.splitlines() if line.startswith(start)]
        found = dict(line.removeprefix(start).split(" ", 1) for line in lines)
        assert len(found) == len(lines), "a family is there twice"
        return found
