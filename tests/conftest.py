"""One Hypothesis profile for every run: a shared machine is no reason to fail, so nothing is timed."""

from hypothesis import settings

settings.register_profile("ci", deadline=None)
settings.load_profile("ci")
