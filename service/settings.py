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
    memory_dir: Annotated[
        str,
        Meta(
            description="Directory in memory, where uploads of up to 256 KiB and what they become are kept while they "
            "are converted, up to 64 MiB for each converter; empty: in GEOMILL_DATA_DIR like larger ones."
        ),
    ] = "/dev/shm"  # noqa: S108 -- a directory of our own is made in there, and its owner looked at
    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 8080
    private_port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)] | None,
        Meta(
            description="Port of its own for /healthz, /readyz, /metrics, /openapi.json and /docs, which are then "
            "nowhere else; unset: they are on the port of the service."
        ),
    ] = None
    private_host: Annotated[
        str, Meta(description="Address to listen on with the private port; empty: that of the service.")
    ] = ""
    root_path: Annotated[
        str,
        Meta(
            pattern=r"^(/[A-Za-z0-9._~-]+)*$",
            description="Path that a gateway in front puts before every address, as /geo, passed on or not.",
        ),
    ] = ""
    trusted_proxies: Annotated[
        str,
        Meta(
            description="Addresses and networks of gateways, separated by commas, whose X-Forwarded-For, -Proto and "
            "-Host are believed; nobody else's are."
        ),
    ] = ""
    identity_secret: Annotated[
        str,
        Meta(
            description="Secrets, 32 characters or more each, separated by commas, of a gateway that authenticates "
            "clients itself and signs their account in the header X-Geomill-Identity; empty: that header means nothing."
        ),
    ] = ""
    identity_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="How far the time in that header may be from the clock of this host.")
    ] = 60.0
    cors_origins: Annotated[
        str,
        Meta(description="Origins of web pages whose scripts may call it, separated by commas, or *; empty: none."),
    ] = ""
    max_connections: Annotated[
        int, Meta(ge=1, description="Connections open at the same time; more are refused with status 503.")
    ] = 4096
    max_header_bytes: Annotated[
        int, Meta(ge=1024, le=65536, description="Longest head of a request; longer ones are refused with status 431.")
    ] = 16_384
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
    http2: Annotated[
        bool,
        Meta(
            description="Speak HTTP/2 with clients that begin with it (prior knowledge); as a rule a gateway in front "
            "does that."
        ),
    ] = False
    postgres_bin_dir: Annotated[
        str,
        Meta(description="Directory of the embedded database's programs (postgres, initdb); empty: the newest found."),
    ] = ""
    postgres_user: Annotated[
        str,
        Meta(description="User that runs the embedded database when Geomill runs as root; empty: postgres or nobody."),
    ] = ""
    ogr2ogr: Annotated[str, Meta(description="Path of the program ogr2ogr; empty: found on the PATH.")] = ""
    sandbox: Annotated[
        Literal["strict", "best-effort"],
        Meta(
            description="strict: refuse to start without network, file-system and limit isolation, or where converters "
            "would be root; best-effort: go on."
        ),
    ] = "strict"
    converters: Annotated[int, Meta(ge=0, description="Files converted at once; 0: one for each core.")] = 0
    suspended: Annotated[
        int,
        Meta(
            ge=0,
            description="Files that may stand still at once while another account has their converter, each with the "
            "memory that it has taken; 0: two for each converter.",
        ),
    ] = 0
    waiting_room: Annotated[
        int,
        Meta(
            ge=1,
            description="Most files that may wait for a converter; more are refused with status 503, and so are those "
            "that could not be begun within a second or so.",
        ),
    ] = 512
    max_per_account: Annotated[
        int, Meta(ge=1, description="Files of one account under way at once; more are refused with status 429.")
    ] = 384
    conversion_seconds: Annotated[
        float, Meta(gt=0, description="Longest time that one run of the converter may take.")
    ] = 120.0
    file_seconds: Annotated[
        float, Meta(gt=0, description="Longest time that one file may use a converter, in all its runs together.")
    ] = 600.0
    conversion_memory_bytes: Annotated[
        int, Meta(ge=536_870_912, description="Most memory that one run of the converter may take, in bytes.")
    ] = 2_684_354_560
    drain_seconds: Annotated[
        float, Meta(ge=0, description="How long a stopping service goes on with what it has accepted.")
    ] = 60.0
    drain_delay_seconds: Annotated[
        float,
        Meta(
            ge=0,
            description="How long a stopping service still takes work while /readyz says that it leaves, so that "
            "balancers notice.",
        ),
    ] = 0.0
    max_file_bytes: Annotated[
        int, Meta(ge=1, description="Largest file that may be uploaded, for every plan, in bytes.")
    ] = 104_857_600
    max_batch_bytes: Annotated[int, Meta(ge=1, description="Largest body of a batch request, in bytes.")] = 209_715_200
    max_batch_files: Annotated[int, Meta(ge=1, le=1000, description="Most files in one batch request.")] = 20
    upload_idle_seconds: Annotated[
        float, Meta(gt=0, description="How long an upload may fall silent before it is refused with status 408.")
    ] = 30.0
    upload_total_seconds: Annotated[float, Meta(gt=0, description="Longest time that an upload may take.")] = 3600.0
    upload_min_bytes_per_second: Annotated[
        int, Meta(ge=1, description="Slowest mean rate of an upload, counted from upload_idle_seconds after its start.")
    ] = 4096
    lease_seconds: Annotated[
        int,
        Meta(
            ge=2,
            description="A process silent for so long is taken for dead: its jobs are ended by others, and a request "
            "that it broke off under an idempotency key can be repeated.",
        ),
    ] = 30
    job_days: Annotated[
        int, Meta(ge=7, le=36_500, description="How many days after its end a job can be found; then it is pruned.")
    ] = 90
    ledger_months: Annotated[
        int,
        Meta(
            ge=2,
            le=1_200,
            description="How many months before the current one keep each charge and each month's use; what is older "
            "is pruned to sums, charges no earlier than their jobs.",
        ),
    ] = 24
    revoked_key_days: Annotated[
        int, Meta(ge=1, le=36_500, description="How many days after it was revoked an API key is forgotten.")
    ] = 365
    wallet_base_cents: Annotated[
        int, Meta(ge=0, description="Price of a file for accounts with prepaid credit, in US cents.")
    ] = 5
    wallet_cents_per_mib: Annotated[
        int, Meta(ge=0, description="What each started MiB adds to that price, in US cents.")
    ] = 1
    s3_bucket: Annotated[
        str, Meta(description="Bucket for results; empty: results are kept in the data directory of this host.")
    ] = ""
    s3_endpoint: Annotated[
        str, Meta(description="Address of the S3-compatible server (https://…); empty: AWS, in the bucket's region.")
    ] = ""
    s3_public_endpoint: Annotated[
        str, Meta(description="Address of that server for clients, in download links; empty: the same address.")
    ] = ""
    s3_region: Annotated[str, Meta(min_length=1, description="Region of the bucket.")] = "us-east-1"
    s3_access_key: Annotated[
        str, Meta(description="Access key; empty: the credentials of the environment (AWS_…, profile, role).")
    ] = ""
    s3_secret_key: Annotated[str, Meta(description="Secret key that belongs to the access key.")] = ""
    s3_addressing: Annotated[
        Literal["auto", "path", "virtual"],
        Meta(description="Where the bucket stands in an address; auto: in the host for AWS, in the path elsewhere."),
    ] = "auto"
    s3_prefix: Annotated[str, Meta(description="What the names of all objects begin with.")] = "results/"
    s3_sse: Annotated[
        Literal["", "AES256", "aws:kms"], Meta(description="Encryption at rest that the server is asked for.")
    ] = ""
    s3_sse_key_id: Annotated[str, Meta(description="Key for aws:kms; empty: the account's own.")] = ""
    s3_regions: Annotated[
        str,
        Meta(
            description="More regions that accounts may choose, as JSON: a name and what differs from the settings "
            'above, as in {"eu": {"bucket": "geomill-eu", "region": "eu-central-1"}}.'
        ),
    ] = ""
    s3_timeout_seconds: Annotated[
        float, Meta(ge=1, le=600, description="How long a request to the object store may take, retries and all.")
    ] = 30.0
    s3_attempts: Annotated[int, Meta(ge=1, le=10, description="How often a request to the object store is tried.")] = 4
    s3_connections: Annotated[
        int, Meta(ge=1, le=1024, description="Connections to the object store at the same time.")
    ] = 64
    traces_url: Annotated[
        str,
        Meta(
            description="Address that takes traces by OTLP over HTTP (http://…/v1/traces), which needs the extra "
            "`tracing`; empty: no spans are recorded."
        ),
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
        SettingsError: a variable is unknown, outside its bounds, given twice, or names a file that cannot be read.
    """
    known = {field.encode_name for field in msgspec.structs.fields(Settings)}
    values: dict[str, str] = {}
    for name, value in environment.items():
        if not name.startswith(PREFIX):
            continue
        base = name.removesuffix(FILE_SUFFIX)
        if name not in known and base in known:
            if base in environment:
                raise SettingsError(f"{base} and {name} are both set. Set one of them.")
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
    except ValueError:
        raise SettingsError(f"{variable} names a file that is not text.") from None
