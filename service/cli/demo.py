"""The demonstration at the first start: an account, a sample file, and the command that converts it."""

import os
import shlex
from contextlib import suppress
from pathlib import Path

import msgspec

from service.accounts.administration import Account, Administration, CreatedKey, Terms
from service.accounts.keys import Authenticator
from service.clock import utc_now
from service.db.pool import Database
from service.errors import InvalidApiKey, MissingApiKey
from service.metering.plans import BY_ID

NAME = "demo"
PLAN = BY_ID["team"]

SAMPLE_NAME = "lakes.geojson"
SAMPLE = b"""{"type": "FeatureCollection", "features": [
  {"type": "Feature", "properties": {"name": "Titicaca", "elevation_in_metres": 3812, "country": "Bolivia, Peru"},
   "geometry": {"type": "Point", "coordinates": [-69.35, -15.82]}},
  {"type": "Feature", "properties": {"name": "Ladoga", "elevation_in_metres": 5, "country": "Russia"},
   "geometry": {"type": "Point", "coordinates": [31.5, 60.85]}},
  {"type": "Feature", "properties": {"name": "V\xc3\xa4nern", "elevation_in_metres": 44, "country": "Sweden"},
   "geometry": {"type": "Point", "coordinates": [13.3, 58.9]}}
]}
"""


class Demo(msgspec.Struct, frozen=True, rename="camel"):
    """The key of the demo account; kept in a file in the data directory, because the database has only its hash."""

    api_key: str


async def demo_key(database: Database, data_directory: Path) -> str:
    """Return the key of the demo account; create both if there is no valid key."""
    path = data_directory / "demo.json"
    kept = _kept_key(path)
    with suppress(MissingApiKey, InvalidApiKey):
        await Authenticator(database, utc_now).authenticate(kept)
        return kept
    path.unlink(missing_ok=True)
    administration = Administration(database, utc_now)
    terms = Terms(plan=PLAN.id, plan_owner=PLAN.owner)

    def keep(_account: Account, key: CreatedKey) -> None:
        _write_private(path, msgspec.json.encode(Demo(key.api_key)))

    _, key = await administration.create_account(NAME, terms, keep)
    return key.api_key


def sample_file(data_directory: Path) -> Path:
    """Write a small file to convert and return its path."""
    path = data_directory / SAMPLE_NAME
    path.write_bytes(SAMPLE)
    return path


def curl_line(url: str, key: str, sample: Path) -> str:
    """Return the command that converts the sample, for any POSIX shell and any directory."""
    arguments = ["curl", "-sS", "-H", f"X-API-Key: {key}", "-F", f"file=@{sample}", f"{url}/api/geo/convert/file"]
    return shlex.join(arguments)


def page_line(url: str, key: str) -> str:
    """Return the sentence that invites to the page."""
    return f"Open the page, with the key of the demo account:\n\n  {page_link(url, key)}\n\n"


def page_link(url: str, key: str) -> str:
    """Return a link that fills in the key on the page: the part after # never leaves the browser."""
    return f"{url}/#key={key}"


def _kept_key(path: Path) -> str:
    """The key in the file; empty without one, or if a start that was killed, or a full disk, left only a part of it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Demo).api_key
    except (FileNotFoundError, ValueError):
        return ""


def _write_private(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
