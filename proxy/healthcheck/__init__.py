"""Health-check node ports: where a load balancer asks whether this node has endpoints of a Service of its own.

Pure: `checks` (which Service wants which port, and how many endpoints), `answers` (the HTTP bytes).
Effects: `listeners` (the sockets), `server` (one thread for all of them).
"""
