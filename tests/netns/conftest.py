"""What tests on the real kernel share."""

import sys

import pytest


@pytest.fixture
def python() -> list[str]:
    """The command of this interpreter, for a program that must run with other rights or in another namespace."""
    return [sys.executable]
