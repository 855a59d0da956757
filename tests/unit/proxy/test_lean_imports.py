"""Imports that leave out what a package imports for everybody."""

import subprocess
import sys
from importlib import import_module

import pytest

from proxy.lean_imports import bare_package

PROBE = """
import sys
import proxy.announcer.netlink
print("pyroute2.iproute" in sys.modules, "pyroute2.ndb.main" in sys.modules, "pyroute2" in sys.modules)
from pyroute2 import IPRoute, NDB
print(IPRoute is proxy.announcer.netlink.IPRoute)
"""


def test_the_announcer_takes_of_pyroute2_what_it_needs_and_others_get_all_of_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=120)

    assert done.stdout.split() == ["True", "False", "False", "True"]


def test_a_package_that_is_not_there_is_missed_as_always() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), bare_package("no_such_package"):
        import_module("no_such_package.part")


def test_a_package_that_was_imported_before_is_left_alone() -> None:
    with bare_package("pytest"):
        assert sys.modules["pytest"] is pytest
    assert sys.modules["pytest"] is pytest
