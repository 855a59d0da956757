"""The node daemon: everything between the API's events and the kernel's maps.

Subpackages: `planner` (pure: Snapshot to desired elements), `kernel` (elements to nfnetlink and back), `sources`
(where events come from), `cli` (the commands). At this level: configuration, the loop that owns the state, and what is
seen from outside (logs, metrics, health).
"""
