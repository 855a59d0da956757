import json

from e2e.conformance.report import (
    BEGIN,
    END,
    Outcome,
    State,
    decode_names,
    decode_report,
    merge,
    put_table,
    render_left_out,
    render_table,
)

PASSED = Outcome(State.PASSED, 12.4, "")
FAILED = Outcome(State.FAILED, 130.0, "no reply | at all", 1, 1)
SKIPPED = Outcome(State.SKIPPED, 0.1, "needs 3 zones")


def spec(text: str, state: str, message: str = "", kind: str = "It") -> dict[str, object]:
    return {
        "LeafNodeType": kind,
        "LeafNodeText": text,
        "State": state,
        "ContainerHierarchyTexts": ["[sig-network] Services"],
        "RunTime": 1_500_000_000,
        **({"Failure": {"Message": message}} if message else {}),
    }


def test_specs_are_read_with_their_outcome() -> None:
    specs = [
        spec("should serve", "passed"),
        spec("should refuse", "failed", "timed out\nat line 5"),
        spec("should panic", "panicked", "nil"),
        spec("should balance", "skipped", "needs a cloud"),
    ]
    assert decode_report(json.dumps([{"SpecReports": specs}]).encode()) == {
        "[sig-network] Services should serve": Outcome(State.PASSED, 1.5, ""),
        "[sig-network] Services should refuse": Outcome(State.FAILED, 1.5, "timed out", 1, 1),
        "[sig-network] Services should panic": Outcome(State.FAILED, 1.5, "nil", 1, 1),
        "[sig-network] Services should balance": Outcome(State.SKIPPED, 1.5, "needs a cloud"),
    }


def test_what_was_not_chosen_is_no_outcome() -> None:
    specs = [spec("should wait", "skipped"), spec("should come", "pending"), spec("", "passed", kind="BeforeSuite")]
    assert decode_report(json.dumps([{"SpecReports": specs}, {"SpecReports": None}]).encode()) == {}


def test_names_are_of_all_specs_also_of_those_that_did_not_run() -> None:
    specs = [spec("should wait", "skipped"), spec("should serve", "passed"), spec("", "passed", kind="BeforeSuite")]
    names = decode_names(json.dumps([{"SpecReports": specs}]).encode())
    assert names == ["[sig-network] Services should wait", "[sig-network] Services should serve"]


def test_what_is_left_out_is_counted_by_reason() -> None:
    table = render_left_out({"a": "asks the Internet", "b": "", "c": "asks the Internet"}).splitlines()
    assert table[2:] == ["| 2 | asks the Internet |", "| 1 | not looked at yet |"]


def test_a_spec_that_ran_counts_over_one_that_skipped_itself() -> None:
    assert merge([{"a": SKIPPED, "b": PASSED}, {"a": PASSED, "b": SKIPPED}]) == {"a": PASSED, "b": PASSED}


def test_a_spec_that_ran_more_than_once_passed_if_it_always_did() -> None:
    always = merge([{"a": PASSED}, {"a": PASSED._replace(took_s=14.4)}, {"a": SKIPPED}])
    assert always == {"a": Outcome(State.PASSED, 13.4, "", 2, 0)}
    once = merge([{"a": PASSED}, {"a": FAILED}, {"a": PASSED}])["a"]
    assert (once.state, once.message, once.runs, once.failed) == (State.FAILED, "no reply | at all", 3, 1)
    table = render_table({"closeby": always}, "a machine") + render_table({"closeby": {"b": once}}, "a machine")
    assert "| a | 13 s x2 |  |" in table
    assert "| b | **failed** 1 of 3 | no reply" in table


def test_the_table_has_a_column_a_proxy_and_remarks_where_one_did_not_pass() -> None:
    runs = {
        "kube-proxy": {"[sig-network] A": PASSED, "[sig-network] C": SKIPPED},
        "closeby": {"[sig-network] A": FAILED},
    }
    table = render_table(runs, "a machine").splitlines()
    assert "| kube-proxy | 1 | 0 | 1 | 12 |" in table
    assert "| closeby | 0 | 1 | 0 | 130 |" in table
    assert table[-2:] == ["| A | 12 s | **failed** | no reply \\| at all |", "| C | skipped | - | needs 3 zones |"]


def test_the_table_stands_between_its_marks() -> None:
    page = f"# Title\n{BEGIN}\nold\n{END}\nmore\n"
    assert put_table(page, "new\n") == f"# Title\n{BEGIN}\nnew\n{END}\nmore\n"
