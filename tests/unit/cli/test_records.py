"""What commands print about accounts and keys, for people."""

import msgspec
import pytest

from service.cli.command import print_list, print_record


class Row(msgspec.Struct, rename="camel"):
    """A record with a value of each kind."""

    may_convert: bool
    past_due: bool
    plan: str | None
    used_bytes: int


class Rows(msgspec.Struct):
    """Several of them."""

    rows: list[Row]


ROW = Row(may_convert=True, past_due=False, plan=None, used_bytes=0)


def test_a_record_is_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each member, with yes, no and a dash in place of Python's values."""
    print_record(ROW, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["mayConvert", "yes"],
        ["pastDue", "no"],
        ["plan", "-"],
        ["usedBytes", "0"],
    ]


def test_a_list_is_in_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each record, below the names."""
    print_list(Rows([ROW]), [ROW], as_json=False)
    header, line = capsys.readouterr().out.splitlines()
    assert (header.split(), line.split()) == (["mayConvert", "pastDue", "plan", "usedBytes"], ["yes", "no", "-", "0"])


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    """With its own words."""
    print_list(Rows([ROW]), [ROW], as_json=True)
    [found] = msgspec.json.decode(capsys.readouterr().out)["rows"]
    assert found == {"mayConvert": True, "pastDue": False, "plan": None, "usedBytes": 0}
