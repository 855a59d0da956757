"""What deploy/ holds, rendered, and run as a kubelet would run it."""
