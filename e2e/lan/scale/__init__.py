"""One real announcer among many members, with one address or thousands: what it costs while nothing happens.

A program speaks for all other members, so that no more than one process is measured and no more than two run.
"""
