"""The counters of the service for Prometheus: numbers by route, status and mechanism, never a text, a key or a user."""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


class Metrics:
    """One registry per service, so that several can live in one process."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.requests = Counter("tacit_requests", "Requests answered", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "tacit_request_seconds", "Time to answer a request", ["route"], buckets=SECONDS, registry=registry
        )
        self.batch_texts = Histogram("tacit_batch_texts", "Texts in a batch", buckets=SIZES, registry=registry)
        self.waiting = Gauge("tacit_waiting_requests", "Rewriting requests not yet answered", registry=registry)
        self.units = Counter("tacit_released_units", "Tokens or documents released", ["mechanism"], registry=registry)
        self.refusals = Counter("tacit_budget_refusals", "Requests and jobs over budget", registry=registry)
        self.jobs = Gauge("tacit_jobs", "Jobs by state", ["state"], registry=registry)
        # Routes and statuses are few, and looking up a label costs more than counting.
        self._of = cache(lambda route, status: (self.requests.labels(route, str(status)), self.seconds.labels(route)))
        self._units_of = cache(self.units.labels)

    def answered(self, route: str, status: int, seconds: float) -> None:
        counter, histogram = self._of(route, status)
        counter.inc()
        histogram.observe(seconds)

    def released(self, mechanism: str, units: int) -> None:
        self._units_of(mechanism).inc(units)

    def page(self) -> bytes:
        return bytes(generate_latest(self._registry))
