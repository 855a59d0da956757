"""A LAN in simulated time, on which the machine of ownership runs as the daemon runs it."""
