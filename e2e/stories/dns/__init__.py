"""DNS to the node's own CoreDNS, and what of it is lost when that one goes away: `python -m e2e.stories dns`."""

from e2e.stories.dns.command import main

__all__ = ["main"]
