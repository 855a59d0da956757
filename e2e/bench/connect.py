"""The program of a client: connects to ClusterIPs, one connection after the other, for some seconds.

    connect.py SECONDS PORT IP..

Prints one JSON line: [connections, failures, median_us, p99_us] of the time from connect() to its return. A connection
is reset at once, so that no port waits in TIME_WAIT. Only the standard library.
"""

import json
import socket
import struct
import sys
import time

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_TIMEOUT_S = 2.0


def main(argv: list[str]) -> int:
    """Connect, and print what it took."""
    seconds, port, ips = float(argv[0]), int(argv[1]), argv[2:]
    took: list[float] = []
    failures = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for ip in ips:
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(_TIMEOUT_S), 0))
            began = time.perf_counter()
            try:
                sock.connect((ip, port))
            except OSError:
                failures += 1
            else:
                took.append(time.perf_counter() - began)
            sock.close()
            if time.monotonic() >= end:
                break
    took.sort()
    median_us, p99_us = (1e6 * took[int(len(took) * part)] if took else 0.0 for part in (0.5, 0.99))
    print(json.dumps([len(took), failures, median_us, p99_us]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
