"""The files that no conversion may read."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from service.confidential import confidential_places
from service.settings import Settings


def places(settings: Settings | None = None, environment: Mapping[str, str] = {}) -> set[Path]:
    """Their paths."""
    return set(confidential_places(settings or Settings(), environment).values())


def test_all_that_the_data_directory_keeps_is_confidential(tmp_path: Path) -> None:
    """The directory, the store, the database and each secret."""
    kept = {tmp_path / name for name in ("store", "link-secrets", "postgres", "demo.json")}
    assert places(Settings(data_dir=str(tmp_path))) >= {tmp_path, *kept}


def test_files_that_variables_name_are_confidential() -> None:
    """Ours and those that PostgreSQL and S3 clients read, also under their own names."""
    environment = {"GEOMILL_S3_SECRET_KEY_FILE": "/run/secrets/s3", "AWS_SHARED_CREDENTIALS_FILE": "/srv/aws"}
    found = places(environment=environment)
    assert {Path("/run/secrets/s3"), Path("/srv/aws"), Path("~/.pgpass").expanduser()} <= found
    assert Path("secret").absolute() in places(environment={"GEOMILL_DATABASE_URL_FILE": "secret"})
    others = {"GEOMILL_DATABASE_URL": "secret", "OTHER_FILE": "secret"}
    assert Path("secret").absolute() not in places(environment=others)


@pytest.mark.parametrize(
    ("database_url", "socket"),
    [
        ("postgresql:///geomill?host=/run/postgresql", "/run/postgresql/.s.PGSQL.5432"),
        ("postgresql://user@/geomill?host=%2Fsrv%2Fdb&port=5433", "/srv/db/.s.PGSQL.5433"),
    ],
)
def test_the_databases_socket_is_confidential(database_url: str, socket: str) -> None:
    """A run that could connect to it would have the service's rights."""
    assert Path(socket) in places(Settings(database_url=database_url))


def test_a_checkouts_history_is_confidential() -> None:
    """That of the checkout that the service runs from."""
    history = Path(__file__).parents[2] / ".git"
    assert (history in places()) is history.exists()
