"""EFFECT: the metrics of status objects, of a proxy that has an announcer."""

from prometheus_client import Counter

WRITES = Counter(
    "closeby_l2_status_writes", "Writes of ServiceL2Status objects, by group and answer.", ["group", "result"]
)
