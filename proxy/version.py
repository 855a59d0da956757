"""The program's version, from the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("closeby")
except PackageNotFoundError:  # run from a checkout that isn't installed
    VERSION = "unknown"
