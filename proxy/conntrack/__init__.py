"""Connection tracking: what we ask of the kernel's settings, and UDP flows that go where no Service sends them."""
