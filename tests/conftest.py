"""One Hypothesis profile for every run: a shared machine is no reason to fail, so nothing is timed.

CLOSEBY_EXAMPLES says how many examples each law is tried on, 100 by default.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    deadline=None,
    max_examples=int(os.environ.get("CLOSEBY_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")
