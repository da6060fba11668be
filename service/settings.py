"""Every setting of Geomill: one frozen record, read once from the environment.

A setting is a field here and nothing else: its name gives the variable (`data_dir` is GEOMILL_DATA_DIR), its
annotation the bounds, its description the line in the documentation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

PREFIX = "GEOMILL_"
FILE_SUFFIX = "_FILE"


class SettingsError(ValueError):
    """A setting has no meaning; the message names the variable and what it may be."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename=lambda name: PREFIX + name.upper()):
    """The service's settings."""

    data_dir: Annotated[
        str,
        Meta(description="Directory of all that Geomill keeps on disk: work files, embedded database, file store."),
    ] = ".geomill"
    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 8080
    public_url: Annotated[
        str,
        Meta(description="Address under which clients reach the service, for links; empty: as the request came in."),
    ] = ""
    database_url: Annotated[
        str, Meta(description="PostgreSQL to use (postgresql://…); empty: an embedded one in the data directory.")
    ] = ""
    link_secrets: Annotated[
        str,
        Meta(
            description="Secrets that sign the links of the local file store, 32 characters or more each, separated by "
            "commas: the first signs, all are accepted; empty: one is made and kept in the data directory."
        ),
    ] = ""
    postgres_bin_dir: Annotated[
        str,
        Meta(description="Directory of the embedded database's programs (postgres, initdb); empty: the newest found."),
    ] = ""
    postgres_user: Annotated[
        str,
        Meta(description="User that runs the embedded database when Geomill runs as root; empty: postgres or nobody."),
    ] = ""
    log_format: Annotated[
        Literal["auto", "console", "json"], Meta(description="Form of the log; auto: console on a terminal, else JSON.")
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Least severity that is logged.")
    ] = "info"

    @property
    def data_path(self) -> Path:
        """`data_dir` as an absolute path."""
        return Path(self.data_dir).resolve()


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings from `environment`.

    `GEOMILL_X_FILE` gives the value of `GEOMILL_X` by the name of a file that holds it.

    Raises:
        SettingsError: a variable is unknown, has a value outside its bounds, or names a file that cannot be read.
    """
    known = {field.encode_name for field in msgspec.structs.fields(Settings)}
    values: dict[str, str] = {}
    for name, value in environment.items():
        if not name.startswith(PREFIX):
            continue
        base = name.removesuffix(FILE_SUFFIX)
        if name not in known and base in known:
            values[base] = _read_secret(name, value)
        elif name in known:
            values[name] = value
        else:
            message = f"{name} is not a setting of Geomill; `docs/settings.md` lists them."
            raise SettingsError(message)
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(str(error).replace("`$.", "`")) from None


def _read_secret(variable: str, file_name: str) -> str:
    try:
        return Path(file_name).read_text(encoding="utf-8").strip()
    except OSError as error:
        message = f"{variable} names a file that cannot be read ({error.strerror})."
        raise SettingsError(message) from None
