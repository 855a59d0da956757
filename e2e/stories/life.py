"""All that may happen to a cluster, one after the other on one cluster for each proxy: fewer clusters to make."""

from e2e.stories import lost, outage, replace, restart, update
from e2e.stories.telling import make_shared_command

main = make_shared_command(
    "life",
    "The stories outage, restart, update, replace and lost on one cluster for each proxy, in place of one each. "
    "Half an hour.",
    (outage.STORY, restart.STORY, update.STORY, replace.STORY, lost.STORY),  # who loses a node comes last
)
