"""The files on this host that no conversion may read.

The service does not start if a directory that conversions read contains one of them, and the self-test tries to
reach them.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from service.settings import FILE_SUFFIX, PREFIX, Settings

_FILES_OF_OTHERS = {
    "PGPASSFILE": "~/.pgpass",
    "PGSERVICEFILE": "~/.pg_service.conf",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "",
}
"""Variables that name files which the clients of PostgreSQL and S3 read, and their default paths."""


def confidential_places(settings: Settings, environment: Mapping[str, str]) -> dict[str, Path]:
    """Return absolute paths, by a description for the operator; not all of them need exist."""
    data = settings.data_path
    return {
        "the data directory (GEOMILL_DATA_DIR)": data,
        "the file store": data / "store",
        "the link secrets": data / "link-secrets",
        "the embedded database": data / "postgres",
        "the demo key": data / "demo.json",
        **dict(_database_sockets(settings.database_url)),
        **dict(_files_of_settings(environment)),
        **dict(_files_of_others(environment)),
        **dict(_history()),
    }


def _database_sockets(database_url: str) -> Iterator[tuple[str, Path]]:
    query = parse_qs(urlsplit(database_url).query)
    for host in (part for value in query.get("host", ()) for part in value.split(",")):
        if host.startswith("/"):
            port = query.get("port", ["5432"])[0]
            yield "the database's socket (GEOMILL_DATABASE_URL)", Path(host, f".s.PGSQL.{port}")


def _files_of_settings(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    for name, value in environment.items():
        if name.startswith(PREFIX) and name.endswith(FILE_SUFFIX):
            yield f"the file of {name}", Path(value).absolute()


def _files_of_others(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    for name, default in _FILES_OF_OTHERS.items():
        place = os.path.expanduser(environment.get(name) or default)  # noqa: PTH111 -- there may be no home
        if os.path.isabs(place):  # noqa: PTH117 -- the text may be empty
            yield f"the file of {name}", Path(place)


def _history() -> Iterator[tuple[str, Path]]:
    """Yield the Git directory, if this is a checkout."""
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / ".git").exists():
        yield "the checkout's .git", checkout / ".git"
