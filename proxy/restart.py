"""Why the daemon ends by itself: something that only a new start takes in."""


class RestartWanted(Exception):  # noqa: N818 (nothing failed)
    """The process ends with exit code 1 and this sentence, so that whoever runs it starts it anew; the rules stay."""
