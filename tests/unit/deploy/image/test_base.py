"""The base that an image is built in: when one that is there will do, and what happens when two are made at once."""

from pathlib import Path

import pytest

from deploy.image.base import ROOT, fits, keep, read_pins

WHEELS = ("rich-15.0.0-py3-none-any.whl", "PyYAML-6.0.4-cp311-cp311-manylinux_2_17_x86_64.whl")
PINS = "mypy_extensions==1.2.0\nPyYAML==6.0.4\nrich==15.0.0\n"


@pytest.mark.parametrize(
    ("pins", "fit"),
    [
        pytest.param(PINS, True, id="all are pinned as they are"),
        pytest.param(PINS + "ruff==0.17.6\n", True, id="a pin more, of what isn't in it"),
        pytest.param(PINS.replace("1.2.0", "1.3.0"), True, id="another pin of what isn't in it"),
        pytest.param("rich==15.0.0\n", True, id="one isn't pinned"),
        pytest.param(PINS.replace("15.0.0", "15.0.1"), False, id="another version of one"),
        pytest.param(PINS.replace("PyYAML==6.0.4", "pyyaml==6.0.5"), False, id="of one that is spelled in another way"),
    ],
)
def test_a_base_will_do_while_its_wheels_are_of_the_pinned_versions(pins: str, fit: bool) -> None:  # noqa: FBT001
    assert fits(WHEELS, read_pins(pins)) == fit


def test_every_line_of_constraints_txt_is_a_pin() -> None:
    pins = read_pins((ROOT / "constraints.txt").read_text())

    assert pins["types-pyyaml"]
    assert all(version[0].isdigit() for version in pins.values())


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_whoever_made_it_second_takes_what_is_there(tmp_path: Path, first: bool) -> None:  # noqa: FBT001
    made, kept = tmp_path / "making", tmp_path / "kept"
    for folder in (made,) if first else (made, kept):
        folder.mkdir()
        (folder / "whose").write_text(folder.name)

    assert keep(made, kept) == kept

    assert (kept / "whose").read_text() == ("making" if first else "kept")


def test_a_base_that_cannot_be_kept_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "making").mkdir()

    with pytest.raises(FileNotFoundError):
        keep(tmp_path / "making", tmp_path / "nowhere" / "kept")
