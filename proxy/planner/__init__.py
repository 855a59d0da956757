"""From a Snapshot and one node's place to the elements that the node's maps should hold.

Pure: no clock, no logging, no I/O. `planner.py` is the one class with state; the rest are functions of their arguments.
"""
