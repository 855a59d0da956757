"""What the bridge is told to drop."""

from e2e.lan.cuts import Cut, cut_all, cut_around, render_cuts
from e2e.lan.members import plan_nodes

ONE, TWO, THREE = plan_nodes("x-", 3)
NODES = (ONE, TWO, THREE)


def pairs(cuts: tuple[Cut, ...]) -> set[tuple[str, str]]:
    return {(cut.source, cut.target) for cut in cuts}


def test_around_one_node_nothing_passes_either_way_and_the_others_keep_each_other() -> None:
    assert pairs(cut_around(ONE, NODES)) == {
        ("p-node-1", "p-node-2"),
        ("p-node-1", "p-node-3"),
        ("p-node-2", "p-node-1"),
        ("p-node-3", "p-node-1"),
    }


def test_between_all_every_ordered_pair_is_cut() -> None:
    assert len(pairs(cut_all(NODES))) == 6


def test_only_what_matches_is_dropped() -> None:
    text = render_cuts(cut_around(ONE, [TWO], ("ip protocol 112", "ip6 nexthdr 112")))

    assert "iifname p-node-1 oifname p-node-2 ip protocol 112 drop\n" in text
    assert "iifname p-node-2 oifname p-node-1 ip6 nexthdr 112 drop\n" in text
    assert text.count(" drop\n") == 4


def test_without_cuts_the_table_is_replaced_by_one_that_drops_nothing() -> None:
    text = render_cuts(())

    assert text.index("delete table bridge cuts") < text.index("chain forward")
    assert "drop" not in text
