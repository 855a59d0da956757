"""What MetalLB 0.15.2 showed in an earlier measurement: given, not measured here.

Of 2026-11-29: Linux 6.18, 2 shared cores, one bridge, 3 nodes, 10 VIPs, IPv4, memberlist's LAN defaults (MetalLB has
nothing to tune). Median, p95 and longest, as far as they were noted.
"""

from e2e.lan.measure import Figure

SPEAKER = "MetalLB 0.15.2 (given)"
NODES = 3
GIVEN = {
    ("node lost", Figure.DARK): "5.70 / 6.87 / 7.95",
    ("node lost", Figure.LOST): "563 / - / -",
    ("node lost", Figure.ANNOUNCED): "10 / - / -",
    ("node lost in 2 min without an API server", Figure.DARK): "5.60 / 6.79 / 6.97",  # lost 10 s into the outage
    ("daemon killed", Figure.COLD): "5.53 / 6.90 / 6.90",
    ("planned drain", Figure.LOST): "0 / - / -",
    ("planned drain", Figure.DARK): "0.06 / - / -",
    ("node returns", Figure.TWO): "23.5 / 41.9 / 42.6",
    ("rolling restart of the daemons", Figure.TWO): "0.08 / 0.18 / 0.20",
    ("only heartbeats cut around the owner, 6 s", Figure.TWO): "24 in 30 s, 14 to 25 after",
}
