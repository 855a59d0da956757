"""Where commands of these folders show what they do and find."""

from rich.console import Console


def open_console(*, stderr: bool = True, soft_wrap: bool = False) -> Console:
    """Standard error, where progress goes, or standard output for what was asked for.

    No emoji: Rich 15 would read a part of fd00:100::1, or of a MAC such as de:ab:38:00:00:01, as the name of one.
    """
    return Console(stderr=stderr, soft_wrap=soft_wrap, emoji=False)
