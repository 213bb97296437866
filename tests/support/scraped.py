"""Metrics as Prometheus reads them from a process."""

from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.support.plain_http import NO_TLS


@dataclass(frozen=True)
class Scraped:
    """What a process showed at one time."""

    text: str
    samples: tuple[Sample, ...]
    types: dict[str, str]

    def find(self, name: str, **labels: str) -> float | None:
        """Return the sum of the samples of this name that have these labels; None without any."""
        found = [
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        return sum(found) if found else None

    def value(self, name: str, **labels: str) -> float:
        """Return what ``find`` returns, where there is something.

        Raises:
            AssertionError: there is no such sample.
        """
        value = self.find(name, **labels)
        assert value is not None, f"{name} {labels} is not in\n{self.text}"
        return value


def parse(text: str) -> Scraped:
    """Read the text format."""
    families = list(text_string_to_metric_families(text))
    return Scraped(
        text,
        tuple(sample for family in families for sample in family.samples),
        {family.name: family.type for family in families},
    )


def scrape(url: str) -> Scraped:
    """Ask a process for its metrics, without any key.

    Raises:
        AssertionError: it does not answer with 200.
    """
    answer = httpx.get(f"{url}/metrics", trust_env=False, verify=NO_TLS, timeout=30)
    assert answer.status_code == httpx.codes.OK, answer.text
    return parse(answer.text)
