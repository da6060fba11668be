"""The configuration of the buckets: the settings GEOMILL_S3_… as one validated record per region."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from service.settings import Settings, SettingsError

HOME = ""
"""The region of objects whose account has not chosen a region."""

_IN_HOST_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|arn:.*")

RegionName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,31}$")]


class BucketConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bucket and how to reach it; without an access key, the credentials of the environment apply."""

    bucket: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{3,255}$|^arn:")]
    region: str = "us-east-1"
    endpoint: str = ""
    public_endpoint: str = ""
    access_key: str = ""
    secret_key: str = ""
    addressing: Literal["auto", "path", "virtual"] = "auto"
    prefix: str = "results/"
    sse: Literal["", "AES256", "aws:kms"] = ""
    sse_key_id: str = ""

    def __repr__(self) -> str:
        return f"BucketConfig({self.bucket!r}, {self.region!r})"

    def __post_init__(self) -> None:
        if bool(self.access_key) != bool(self.secret_key):
            raise ValueError("set both the access key and the secret key, or neither")
        for address in filter(None, (self.endpoint, self.public_endpoint)):
            if not address.startswith(("http://", "https://")):
                raise ValueError("an endpoint must start with https:// or http://")

        if self.addressing_style == "virtual" and not _IN_HOST_NAME.fullmatch(self.bucket):
            raise ValueError(
                "the bucket's name cannot be part of a host name, which takes 3 to 63 lower-case letters, digits, dots "
                "and hyphens; for a bucket that has this name, set GEOMILL_S3_ADDRESSING=path"
            )

    @property
    def addressing_style(self) -> Literal["path", "virtual"]:
        """The addressing style of botocore; `auto` is virtual-hosted for AWS, and path for every other server."""
        if self.addressing == "auto":
            return "path" if self.endpoint else "virtual"
        return self.addressing


def read_bucket_configs(settings: Settings) -> dict[str, BucketConfig]:
    """Return the bucket of each region, including `HOME`; empty if no bucket is set.

    Raises:
        SettingsError: the settings contradict each other; the message names the variable.
    """
    if not settings.s3_bucket:
        plain = Settings()
        for name in (f"s3_{part}" for part in (*BucketConfig.__struct_fields__, "regions")):
            if getattr(settings, name) != getattr(plain, name):
                raise SettingsError(f"GEOMILL_{name.upper()} needs a bucket. Set GEOMILL_S3_BUCKET, too.")
        return {}
    home = _home(settings)
    configs = {HOME: home, **_others(settings.s3_regions, home)}
    if len({(config.endpoint, config.bucket, config.prefix) for config in configs.values()}) < len(configs):
        raise SettingsError("GEOMILL_S3_REGIONS names a bucket twice. Give each region its own bucket or prefix.")
    return configs


def _home(settings: Settings) -> BucketConfig:
    try:
        return msgspec.convert(
            {name: getattr(settings, f"s3_{name}") for name in BucketConfig.__struct_fields__}, BucketConfig
        )
    except msgspec.ValidationError as error:
        raise SettingsError(_complaint(error)) from None


def _complaint(error: msgspec.ValidationError) -> str:
    """Name the variable that is wrong; an error without a path concerns several."""
    wrong = re.search(r"`\$\.(\w+)`", str(error))
    if wrong is None:
        return f"The settings GEOMILL_S3_… are inconsistent: {error}."
    if wrong[1] == "bucket":
        return (
            "GEOMILL_S3_BUCKET is not the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens, such "
            "as geomill-eu."
        )
    return f"GEOMILL_S3_{wrong[1].upper()} is not valid: {str(error).partition(' - at ')[0]}."


def _others(text: str, home: BucketConfig) -> Mapping[str, BucketConfig]:
    """Parse GEOMILL_S3_REGIONS; a region inherits what it does not define from the home region."""
    if not text:
        return {}
    try:
        given = msgspec.json.decode(text, type=dict[RegionName, dict[str, str]])
        return {
            name: msgspec.convert(msgspec.structs.asdict(home) | fields, BucketConfig) for name, fields in given.items()
        }
    except msgspec.DecodeError as error:
        raise SettingsError(f"GEOMILL_S3_REGIONS is invalid: {error}.") from None
