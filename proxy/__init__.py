"""The node daemon: from the API's objects to the kernel."""
