"""Whether a table in the kernel does what closeby would choose: ours, or that of kube-proxy's nftables mode."""
