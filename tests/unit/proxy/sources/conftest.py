"""What the tests of sources share: a server whose answers a test writes, and a listener to what is posted."""

from collections.abc import Iterator

import pytest

from tests.unit.proxy.sources.api_double import ApiDouble, Posted, answer_status


@pytest.fixture
def double() -> Iterator[ApiDouble]:
    double = ApiDouble(lambda _: answer_status(500, "the test says nothing"))
    yield double
    double.close()


@pytest.fixture
def posted() -> Posted:
    return Posted()
