"""ServiceL2Status objects and Events: what an announcer told of addresses, written for people and programs to read."""
