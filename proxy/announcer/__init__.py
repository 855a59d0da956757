"""The announcer's process: packets, wire format, sockets. Who owns what is decided by proxy.l2."""
