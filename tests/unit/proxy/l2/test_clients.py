"""How the clients of a shared address are remembered: laws."""

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP
from proxy.l2.clients import KEPT_S, MOST_CLIENTS, remember
from proxy.l2.shares import Client

NOW_S = 5000.0
ips = st.integers(0, 30).map(lambda last: IP(f"192.0.2.{last}"))
some = st.dictionaries(ips, st.builds(Client, st.sampled_from(["a", "b"]), st.integers(4000, 5000)), max_size=20)


def crowd(count: int, offset_s: float = 0.0) -> dict[IP, Client]:
    return {IP(f"10.0.{at >> 8}.{at & 255}"): Client("mac", NOW_S - count + at + offset_s) for at in range(count)}


@given(some, some, some)
def test_in_whatever_order_and_however_often_words_of_clients_come_the_latest_counts(
    one: dict[IP, Client], two: dict[IP, Client], three: dict[IP, Client]
) -> None:
    found = remember(remember(remember({}, one, NOW_S), two, NOW_S), three, NOW_S)

    assert found == remember(remember(remember({}, three, NOW_S), one, NOW_S), two, NOW_S)
    assert found == remember(found, two, NOW_S)
    assert found.keys() == one.keys() | two.keys() | three.keys()
    for ip, client in found.items():
        assert client.seen_s == max(each[ip].seen_s for each in (one, two, three) if ip in each)


@given(st.integers(1, 200))
def test_more_than_the_bound_leaves_the_latest(beyond: int) -> None:
    known = crowd(MOST_CLIENTS)
    newer = {IP(f"192.0.2.{at}"): Client("mac", NOW_S + at) for at in range(beyond)}

    found = remember(known, newer, NOW_S)

    assert len(found) <= MOST_CLIENTS
    assert newer.keys() <= found.keys()
    forgotten = [client.seen_s for ip, client in known.items() if ip not in found]
    kept = [client.seen_s for ip, client in known.items() if ip in found]
    assert max(forgotten) < min(kept)


def test_those_that_nobody_has_seen_for_long_go_first_when_room_is_needed() -> None:
    old = crowd(MOST_CLIENTS, -KEPT_S - MOST_CLIENTS)

    assert remember(old, {IP("192.0.2.1"): Client("mac", NOW_S)}, NOW_S).keys() == {IP("192.0.2.1")}
