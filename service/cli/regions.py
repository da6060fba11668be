"""The regions of the store, as operators name them."""

from service.cli.command import InvalidCommandError
from service.settings import Settings
from service.storage.bucket_config import HOME, read_bucket_configs


def region_of(settings: Settings, text: str) -> str:
    """Return the region of this name: one that the settings define, or `home`.

    Raises:
        InvalidCommandError: there is none.
    """
    known = sorted(set(read_bucket_configs(settings)) - {HOME})
    if text in known:
        return text
    if text == "home":
        return HOME
    raise InvalidCommandError(
        f"There is no region {text!r}. Choose one of {', '.join(['home', *known])}; GEOMILL_S3_REGIONS defines them."
    )
