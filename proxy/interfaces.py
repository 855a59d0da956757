"""What Linux takes as an interface's name. Pure."""

_MAX_NAME = 16  # IFNAMSIZ, with the zero at its end


def is_interface_name(text: str) -> bool:
    """Whether Linux could call an interface so (dev_valid_name), or begin a name so."""
    return 0 < len(text.encode()) < _MAX_NAME and not any(c.isspace() or c in "/:*" for c in text)
