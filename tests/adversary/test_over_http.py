"""A hijacked converter in the running service, controlled through an upload, finds nothing and changes nothing.

Once with the service as root, once as an ordinary user who runs it from a checkout.
"""

import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.adversary.hijack import hijacked_ogr2ogr, loot, orders, taken
from tests.adversary.victim import NOBODY, Serving, Victim, check_out, serving
from tests.support.data import lakes

IS_ROOT = os.geteuid() == 0
KINDS = {"root": 0, "an ordinary user": NOBODY} if IS_ROOT else {"an ordinary user": os.geteuid()}
MOST_THREADS = 5000
REPROJECTED = {"outputFormat": "Shapefile", "targetEpsg": "3857"}

pytestmark = [
    pytest.mark.xdist_group("over HTTP"),  # two attacks for all
    pytest.mark.skipif(shutil.which("ogr2ogr") is None, reason="no ogr2ogr"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """The adversary's orders, its results, what it found later, and another account's result before and after."""

    launcher: str
    tried: dict[str, list[str]]
    told: dict[str, str]
    taken: dict[str, str]
    later: dict[str, str]
    before: bytes
    after: bytes

    def got(self, *verbs: str) -> dict[str, str]:
        """The results of these verbs."""
        return {order: answer for order, answer in self.taken.items() if order.partition("=")[0] in verbs}


@pytest.fixture(scope="module", params=list(KINDS.values()), ids=list(KINDS))
def attack(request: pytest.FixtureRequest) -> Iterator[Attack]:
    """One upload with all orders, between two uploads of another account."""
    with (
        tempfile.TemporaryDirectory() as name,
        tempfile.TemporaryDirectory() as elsewhere,
        hijacked_ogr2ogr(_open_to_all(elsewhere)) as program,
    ):
        checkout = check_out(_open_to_all(name), request.param)
        with serving(Victim(checkout, program, request.param)) as here:
            with here.victim.customer(here.url, "other") as other, here.victim.demo(here.url) as adversary:
                before = other.converted(lakes(), **REPROJECTED)
                tried = _all_orders(here, Path(elsewhere))
                result = adversary.converted(orders(tried), outputFormat="Csv")
                after = other.converted(lakes(), **REPROJECTED)
                databases = list(map(str, here.victim.data_dir.glob("proj/*/proj.db")))
                later = adversary.converted(orders({"spoilt": ["any"], "locked": databases}), outputFormat="Csv")
            yield Attack(
                launcher=here.ready["launcher"],
                tried=tried,
                told=loot(result),
                taken=taken(result),
                later=taken(later),
                before=before,
                after=after,
            )


def _open_to_all(name: str) -> Path:
    Path(name).chmod(0o755)
    return Path(name)


def _all_orders(here: Serving, elsewhere: Path) -> dict[str, list[str]]:
    """Every order, including attempts to list names: a name that can be guessed must be of no use either."""
    victim, pid = here.victim, here.process.pid
    (elsewhere / "writable").mkdir()
    (elsewhere / "writable").chmod(0o777)
    data = victim.data_dir
    stored = [path for path in (data / "store").rglob("*") if path.is_file()]
    database = [*(data / "postgres").rglob("PG_VERSION")]
    sockets = [*(data / "postgres").rglob(".s.PGSQL.*[0-9]")]
    assert stored, "the other account's result is in the store"
    assert database, "the database keeps its files in the checkout"
    secrets = [data / "demo.json", data / "link-secrets", victim.identity_secret, victim.checkout / ".git" / "HEAD"]
    processes = [Path(f"/proc/{number}/{what}") for number in (pid, 1) for what in ("environ", "mem", "maps")]
    directories = [victim.checkout, victim.checkout / ".git", data, data / "store", data / "postgres", data / "work"]
    places = [victim.memory_dir, victim.memory_dir.parent, *map(Path, ("/", "/etc", "/proc", "/tmp", "/home", ".."))]  # noqa: S108 -- tried
    return {
        "list": list(map(str, (".", *directories, *places))),
        "read": list(map(str, (*secrets, *database[:2], *stored[:2], "/etc/passwd", "/etc/hostname", *processes))),
        "find": [f"{root}|{name}" for root in (victim.checkout, data, "/") for name in ("link-secrets", "PG_VERSION")],
        "write": [f"{root}/taken-over" for root in (victim.checkout, data, elsewhere / "writable", "..", "/tmp")],  # noqa: S108 -- tried, not used
        "connect": list(map(str, sockets)),
        "tcp": [here.url.rpartition(":")[2]],
        "signal": [str(pid), "1", "-1"],
        "trace": [str(pid), "1"],
        "environment": ["GEOMILL_", "AWS_", "SANDBOX_"],
        "spoil": ["flags", "lock", "lease", "place"],
        "threads": [str(MOST_THREADS)],
    }


def test_the_adversary_tried_everything(attack: Attack) -> None:
    """The fastest launcher delivered its orders, every order has a result, and it can reach its own files."""
    assert attack.launcher == "fork server"
    wanted = {f"{verb}={argument}" for verb, arguments in attack.tried.items() for argument in arguments}
    assert {order.partition("|")[0] for order in attack.told} == {order.partition("|")[0] for order in wanted}
    assert "in.geojson" in attack.told["list=."] or "geojson" in attack.told["list=."]


def test_it_reads_nothing_but_its_own(attack: Attack) -> None:
    """No key, secret, database file, result, checkout, process, environment or history of the service."""
    assert set(attack.got("read", "list", "find", "environment")) == {"list=."}


def test_it_writes_to_nothing_but_its_own(attack: Attack) -> None:
    """It cannot create anything elsewhere either."""
    assert attack.got("write") == {}


def test_it_speaks_to_nobody(attack: Attack) -> None:
    """No sockets, no signals, no tracing."""
    assert attack.got("connect", "tcp", "signal", "trace") == {}


def test_the_next_job_of_another_account_is_as_ever(attack: Attack) -> None:
    """A different coordinate system and a .prj use PROJ's database, which runs once shared."""
    before, after = members(attack.before), members(attack.after)
    assert any(name.endswith(".prj") for name in before)
    assert after == before


def test_it_shares_no_file_that_it_could_spoil(attack: Attack) -> None:
    """No flag, lock or lease on an open file outlives a run."""
    assert attack.later == {}


def test_its_threads_are_bounded(attack: Attack) -> None:
    """The limit applies long before threads burden the host."""
    (made,) = attack.got("threads").values()
    assert int(made.removeprefix("got ")) < MOST_THREADS // 4


def members(archive: bytes) -> dict[str, bytes]:
    """The members of a ZIP archive; a result that is not an archive is returned whole, as an error."""
    if not zipfile.is_zipfile(io.BytesIO(archive)):
        return {"answer": archive}
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}
