"""Our tables in the kernel: names and shapes, packed elements, transactions over netlink, the monitor. See README."""
