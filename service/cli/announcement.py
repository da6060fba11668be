"""What `geomill serve` says when the service is ready."""

import msgspec
import structlog

from service.cli.demo import curl_line, demo_key, page_line, sample_file
from service.cli.ports import Ports, url_of
from service.settings import Settings
from service.telemetry import events
from service.usecases.services import Services

_log = structlog.get_logger()


class Announcement(msgspec.Struct, frozen=True):
    """The addresses, what converts, and a first command to try; the command is empty if the database is not ours."""

    url: str
    private_url: str | None
    launcher: str
    gdal: str
    command: str
    page: str
    """The invitation to the page, if it is on and the database is ours."""


async def prepare_announcement(settings: Settings, services: Services, ports: Ports) -> Announcement:
    """Create the demo account if it does not exist, and return what to say."""
    url, command, page = settings.public_url.rstrip("/") or url_of(ports.main), "", ""
    if not settings.database_url:
        key = await demo_key(services.database, settings.data_path)
        command = curl_line(url, key, sample_file(settings.data_path))
        page = page_line(url, key) if settings.page == "on" else ""
    return Announcement(
        url=url,
        private_url=url_of(ports.private) if ports.private is not None else None,
        launcher=services.pool.report().launcher,
        gdal=services.engine.capabilities.version,
        command=command,
        page=page,
    )


def announce(announcement: Announcement, processes: int) -> None:
    """Log that the service is ready, and print the command."""
    _log.info(
        events.SERVER_READY,
        url=announcement.url,
        private_url=announcement.private_url,
        launcher=announcement.launcher,
        gdal=announcement.gdal,
        processes=processes,
    )
    if announcement.command:
        print(
            f"\nGeomill is ready at {announcement.url}. {announcement.page}Convert a first file:\n\n"
            f"  {announcement.command}\n",
            flush=True,
        )
