"""The collector's /metrics: fetched, read, and one figure made of two looks."""

from __future__ import annotations

import http.client
import math
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from rappor.host import LOOPBACK_HOSTS
from rappor.store.released import STEP

_LINE = re.compile(r"([a-zA-Z_]\w*)(?:\{(\w+)=\"([^\"]*)\"\})? (\S+)")
_SECONDS = 2.0
REPORTS, BATCHES, REFUSED = "rappor_reports_total", "rappor_batches_total", "rappor_refused_total"
COMMITS = "rappor_commit_seconds_bucket"
QUEUE, QUEUE_BYTES = "rappor_queue_batches", "rappor_queue_bytes"
_STEPS = {REPORTS: STEP, BATCHES: STEP, COMMITS: STEP, QUEUE: STEP, QUEUE_BYTES: 65_536}
_MAX_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """What the collector counted, at one moment.

    Attributes:
        at: when, in seconds since 1970.
        values: plain figures by name.
        labelled: figures with one label, by name and label.
    """

    at: float
    values: Mapping[str, float] = field(default_factory=dict)
    labelled: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def value(self, name: str) -> float:
        """A figure; 0 where it is missing."""
        return self.values.get(name, 0.0)

    def labels(self, name: str) -> Mapping[str, float]:
        """A figure by its label."""
        return self.labelled.get(name, {})


def parse(text: str, at: float) -> Sample:
    r"""The figures of a page in Prometheus' text format; lines of other kinds are passed over.

    >>> parse('a_total 3\nb{code="x"} 2', 0.0).labels("b")
    {'x': 2.0}
    """
    values: dict[str, float] = {}
    labelled: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        name, _, label, number = found.groups()
        try:
            value = float(number)
        except ValueError:
            continue
        if label is None:
            values[name] = value
        else:
            labelled.setdefault(name, {})[label] = value
    return Sample(at, values, labelled)


def stepped(sample: Sample) -> Sample:
    """A sample as pages may show it: whatever counts arrivals goes up in steps.

    Of a collector with one collection, exact totals would tick with each report (SECURITY: open
    periods). What is refused, and whether the collector is well, tells nothing about reports.

    >>> stepped(Sample(0.0, {"rappor_reports_total": 149})).value("rappor_reports_total")
    100.0
    """
    values = {name: _down(name, value) for name, value in sample.values.items()}
    labelled = {
        name: {label: _down(name, value) for label, value in labels.items()}
        for name, labels in sample.labelled.items()
    }
    return Sample(sample.at, values, labelled)


def _down(name: str, value: float) -> float:
    """A figure, rounded down to a whole number of steps where it counts arrivals."""
    step = _STEPS.get(name)
    return value if step is None or not math.isfinite(value) else float(value // step * step)


def fetch(collector: str, at: float) -> Sample:
    """The figures of a collector, or OSError.

    On this machine a certificate is not held against it: it is made for the name that clients use.
    """
    parts = urlsplit(collector)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        if host in LOOPBACK_HOSTS:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        body = answer.read(_MAX_BYTES)
        if answer.status != 200:
            raise OSError(f"it answers {answer.status}")
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP: {type(error).__name__}") from None
    finally:
        connection.close()
    return parse(body.decode("utf-8", "replace"), at)


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How much counters grew between two looks; one that fell was started anew from 0.

    >>> grown({"a": 5, "b": 9}, {"a": 7, "b": 2, "c": 1})
    {'a': 2, 'b': 2, 'c': 1}
    """
    return {
        name: value - before.get(name, 0) if value >= before.get(name, 0) else value
        for name, value in after.items()
    }


def quantile(buckets: Mapping[str, float], share: float) -> float | None:
    """The value below which a share lies, from counts below bounds; None without any.

    Between two bounds it is read off a straight line; above the last one, that bound is returned.

    >>> round(quantile({"0.01": 50, "0.02": 100, "+Inf": 100}, 0.99) or 0, 6)
    0.0198
    """
    bounds = sorted((math.inf if name == "+Inf" else float(name), n) for name, n in buckets.items())
    total = bounds[-1][1] if bounds else 0
    if total <= 0:
        return None
    wanted, low, below = share * total, 0.0, 0.0
    for bound, count in bounds:
        if count >= wanted:
            if bound == math.inf:
                return low
            return low + (bound - low) * (wanted - below) / (count - below)
        low, below = bound, count
    return low
