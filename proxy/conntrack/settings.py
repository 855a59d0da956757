"""What the configuration says about connection tracking: kube-proxy's `conntrack` section, with its defaults."""

import msgspec


class ConntrackSettings(msgspec.Struct, frozen=True):
    """Kernel settings to write at start; a 0 leaves the host's own value alone."""

    max_per_core: int = 32_768  # entries; 0: leave nf_conntrack_max and the hash size alone
    min: int = 131_072  # entries, at least, however few cores there are
    tcp_established_timeout_s: float = 86_400.0
    tcp_close_wait_timeout_s: float = 3_600.0
    udp_timeout_s: float = 0.0
    udp_stream_timeout_s: float = 0.0
    tcp_be_liberal: bool = False  # True: accept what is outside of the TCP window
