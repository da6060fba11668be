"""What `geomill convert` displays, sends together and writes."""

import argparse
import io
import socket
import ssl
import zipfile
from pathlib import Path

import pytest

from service.cli.client.bundling import upload_name, write_upload
from service.cli.client.options import REQUEST_OPTIONS, as_fields, members_of
from service.cli.client.outputs import Outputs
from service.cli.client.remote import situation_of
from service.cli.client.reporting import FileOutcome, ProgressBar, lines_about
from service.cli.client.requests import is_wrong_address
from service.cli.command import CommandError
from service.jobs.lifecycle import Situation
from tests.support.data import JOURNAL

A, B = Path("a"), Path("b")


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_a_bar_is_shown_on_a_terminal_and_nowhere_else() -> None:
    """It counts files and the shares of those in progress, and disappears when lines are printed."""
    terminal, told, elsewhere = Terminal(), io.StringIO(), io.StringIO()
    for stream in (terminal, elsewhere):
        bar = ProgressBar(2, stream)
        bar.update("a.csv", "uploading", 0.5)
        bar.finish("a.csv", ["a.csv -> a.gpkg"], told)
        bar.update("b.csv", "converting", 0.5)
        bar.finish("b.csv", [], told)
    shown = terminal.getvalue().split("\r\x1b[K")
    assert [line.partition("]")[0].count("#") for line in shown if line.startswith("[")] == [6, 12, 18]
    assert "1/2 b.csv: converting" in terminal.getvalue()
    assert shown[-1] == ""
    assert elsewhere.getvalue() == ""
    assert told.getvalue() == "a.csv -> a.gpkg\n" * 2


def test_a_bar_never_goes_back() -> None:
    """Neither at a stage whose share is unknown, nor when a stage ends early; it says how much of a stage is done."""
    terminal = Terminal()
    bar = ProgressBar(1, terminal)
    for situation in (Situation("waiting"), Situation("reading", 0.5), Situation("converting"), Situation("reading")):
        bar.convert("a.csv", situation, 0.5, 1.0)
    bar.convert("a.csv", Situation("storing", 1.0), 0.5, 1.0)
    shown = terminal.getvalue().split("\r\x1b[K")[1:]
    assert [line.partition("]")[0].count("#") for line in shown] == [12, 14, 17, 17, 24]
    assert shown[1].endswith("0/1 a.csv: reading, 50%")


def test_why_a_file_waits_is_shown_or_said_once() -> None:
    """So that a wrong address is noticed; but not what passes at once, and nothing beside a report for programs."""
    terminal, elsewhere, quiet = Terminal(), io.StringIO(), io.StringIO()
    for bar in (ProgressBar(2, terminal), ProgressBar(2, elsewhere), ProgressBar(2, quiet, is_alone=True)):
        for name in ("a.csv", "b.csv", "a.csv"):
            bar.wait(name, "It cannot be reached.")
    assert terminal.getvalue().endswith("0/2 a.csv: waiting: It cannot be reached.")
    assert elsewhere.getvalue() == "b.csv: It cannot be reached. It is tried again.\n"
    assert quiet.getvalue() == ""


def test_lines_name_the_options_of_the_command() -> None:
    """The service names the fields of its forms, as which it knows them; what files contain is quoted as it is."""
    error = "Send sourceEpsg; or, for a local grid, send keepCoordinates=true. It has the column 'xField'."
    [line] = lines_about(FileOutcome(file="a.csv", success=False, error=error))
    assert line == (
        "a.csv: Send --source-epsg; or, for a local grid, send --keep-coordinates. It has the column 'xField'."
    )
    warned = FileOutcome(file="a.csv", success=True, warnings=("Name one of them in the field layer.",))
    assert lines_about(warned)[1] == "  Name one of them in --layer."


def test_what_is_sent_are_the_options_that_were_given() -> None:
    """As the fields of the form; 0 is no code of a system, and the server says so."""
    parser = argparse.ArgumentParser()
    for option in REQUEST_OPTIONS:
        parser.add_argument(*option.argument.names, **option.argument.options)  # type: ignore[arg-type]  # as in the command
    given = parser.parse_args(["--epsg", "0", "--x-field", "lon", "--keep-coordinates"])
    assert as_fields(members_of(given)) == {"targetEpsg": "0", "xField": "lon", "keepCoordinates": "true"}


def test_a_database_in_use_is_not_converted_without_its_changes(tmp_path: Path) -> None:
    """They are in a file beside it until the program that has it open is closed."""
    database, log = tmp_path / "lakes.gpkg", tmp_path / "lakes.gpkg-wal"
    database.touch()
    log.write_bytes(bytes(32))
    assert upload_name(database) == "lakes.gpkg"
    log.write_bytes(bytes(33))
    with pytest.raises(CommandError, match=r"'lakes\.gpkg-wal', changes that .* when it is closed\.$"):
        upload_name(database)
    log.rename(tmp_path / "gone")
    (tmp_path / "lakes.gpkg-journal").write_bytes(JOURNAL + b"\xff" * 4)
    with pytest.raises(
        CommandError, match=r"'lakes\.gpkg-journal', .* part of an unfinished change\. .* undoes the change\.$"
    ):
        upload_name(database)


def test_a_result_never_replaces_a_file_unless_told_to(tmp_path: Path) -> None:
    """Neither an existing file, nor one that appears meanwhile, nor another result; a failure leaves nothing."""
    there = tmp_path / "there.csv"
    there.write_text("mine")
    for force in (False, True):
        outputs = Outputs(tmp_path, force=force)
        with outputs.writing(A, f"new{force}.csv") as draft:
            draft.write_text("result")
        with pytest.raises(CommandError, match="the result of a"), outputs.writing(B, f"new{force}.csv"):
            pass
        with pytest.raises(ZeroDivisionError):
            write_half(outputs)
    with pytest.raises(CommandError, match="--force"):
        write_too_late(Outputs(tmp_path, force=False), tmp_path / "late.csv")
    with pytest.raises(CommandError, match="--force"):
        Outputs(tmp_path, force=False).claim(A, "there.csv")
    with Outputs(tmp_path, force=True).writing(A, "there.csv") as draft:
        draft.write_text("result")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"there.csv": "result", "newFalse.csv": "result", "newTrue.csv": "result", "late.csv": "mine"}


def write_half(outputs: Outputs) -> None:
    """Fail in the middle of writing a result."""
    with outputs.writing(A, "failed.csv") as draft:
        draft.write_text("half")
        raise ZeroDivisionError


def write_too_late(outputs: Outputs, path: Path) -> None:
    """Write a result after another process has taken its name."""
    with outputs.writing(A, path.name) as draft:
        draft.write_text("result")
        path.write_text("mine")


@pytest.mark.parametrize(
    ("files", "named", "uploaded", "members"),
    [
        (("a.csv", "a.prj"), "a.csv", "a.csv", None),
        (
            ("a.SHP", "a.shx", "a.dbf", "a.cpg", "b.dbf", "a.txt"),
            "a.SHP",
            "a.zip",
            {"a.SHP", "a.shx", "a.dbf", "a.cpg"},
        ),
        (("a.shp",), "a.shp", "a.shp", None),
        (("a.tab", "a.dat", "a.map", "a.id"), "a.tab", "a.zip", {"a.tab", "a.dat", "a.map", "a.id"}),
        (("a.gdb/gdb", "a.gdb/a1.gdbtable"), "a.gdb", "a.zip", {"a.gdb/gdb", "a.gdb/a1.gdbtable"}),
    ],
)
def test_what_belongs_together_is_sent_together(
    tmp_path: Path, files: tuple[str, ...], named: str, uploaded: str, members: set[str] | None
) -> None:
    """A dataset of several files as a ZIP archive, everything else as it is."""
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert upload_name(tmp_path / named) == uploaded
    target = tmp_path / "upload"
    write_upload(tmp_path / named, target)
    if members is None:
        assert target.read_text() == named
    else:
        assert set(zipfile.ZipFile(target).namelist()) == members


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    """A directory, or a missing path."""
    (tmp_path / "directory").mkdir()
    for name, reason in (("directory", "directory"), ("none.csv", "no such file")):
        with pytest.raises(CommandError, match=reason):
            upload_name(tmp_path / name)


@pytest.mark.parametrize(
    ("progress", "situation"),
    [
        ({"stage": "reading", "share": 0.25}, Situation("reading", 0.25)),
        ({"stage": "converting"}, Situation("converting")),
        ({"stage": "dreaming", "share": 0.25}, Situation("waiting")),
        ({"stage": "reading", "share": "half"}, Situation("waiting")),
        (["reading"], Situation("waiting")),
        (None, Situation("waiting")),
    ],
)
def test_progress_in_unknown_words_ends_no_conversion(progress: object, situation: Situation) -> None:
    """The server may be newer than the command."""
    assert situation_of({"status": "Processing", "progress": progress}) == situation


def test_only_a_wrong_address_is_not_tried_again() -> None:
    """A host or protocol that is wrong stays wrong; a handshake that breaks off may succeed the next time."""
    plain_http = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    plain_http.reason = "WRONG_VERSION_NUMBER"
    wrong = (socket.gaierror(socket.EAI_NONAME, "unknown"), ssl.SSLCertVerificationError(1, "expired"), plain_http)
    passing = (socket.gaierror(socket.EAI_AGAIN, "again"), ssl.SSLEOFError(8, "EOF"), ConnectionResetError())
    assert [is_wrong_address(error) for error in (*wrong, *passing)] == [True] * 3 + [False] * 3
