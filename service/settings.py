"""Every setting of Geomill: one frozen record, read once from the environment.

A setting is one field: its name is the variable (`data_dir` is GEOMILL_DATA_DIR), and its annotation has the bounds and
the line in the documentation.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

PREFIX = "GEOMILL_"
FILE_SUFFIX = "_FILE"
YEAR = 31_536_000
"""In seconds."""
MOST_CENTS = 1_000_000
"""More than any price: who asks for more has mistyped."""
MOST_BYTES = 1 << 40
UNLIMITED = (1 << 63) - 1
"""Up to here, a number may say that there is no limit."""
_URL = r"^(https?://[^\s/].*)?$"
_ORIGINS = r"^[\s,]*((\*|null|[a-z][a-z0-9+.-]*://[^\s,/]+)([\s,]+|$))*$"
_UNDECODED = re.compile("[\ud800-\udfff]")
"""What Python puts in place of bytes of the environment that are not UTF-8."""
_DATA_DIR = f"{PREFIX}DATA_DIR"
"""It is told with its value, and also if the current directory, below which it is, has such a name; see `data_path`."""
LONGEST_DATA_PATH = 400
"""In bytes. SQLite opens no file whose absolute path is longer than 511, and those of conversions are deep below it."""

_NATS_SERVER = r"(nats|tls|ws|wss)://([^/\s]*@)?(\[[0-9a-fA-F:.]+\]|[^\s:/@,\[\]]+)(:\d{1,5})?(/[^\s,]*)?"


class SettingsError(ValueError):
    """A setting is invalid; the message names the variable and the permitted values."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename=lambda name: PREFIX + name.upper()):
    """The service's settings."""

    data_dir: Annotated[
        str,
        "Directory for all data that Geomill keeps on disk: work files, embedded database, file store. Its path may "
        "have up to 400 bytes.",
    ] = ".geomill"
    memory_dir: Annotated[
        str,
        "Directory in memory for the conversion of uploads of up to 256 KiB, up to 64 MiB per converter; empty: "
        "GEOMILL_DATA_DIR, as for larger uploads.",
    ] = "/dev/shm"  # noqa: S108 -- we create a directory of our own in it and check its owner
    host: Annotated[str, "Address to listen on."] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535), "Port to listen on; 0: any free port."] = 8080
    private_port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)] | None,
        "Separate port for /healthz, /readyz, /metrics, /openapi.json and /docs, which then move away from the port "
        "of the service; empty: they stay there.",
    ] = None
    private_host: Annotated[str, "Address of the private port; empty: GEOMILL_HOST."] = ""
    processes: Annotated[
        str,
        Meta(pattern=r"^(auto|[1-9]|[12][0-9]|3[0-2])$"),
        "Number of serving processes on the port, up to 32, which share the limits of this table; auto: one for every "
        "two cores, which keeps them busy.",
    ] = "1"
    page: Annotated[
        Literal["on", "off"], "on: / is a page on which people with a key convert files; off: nothing is at /."
    ] = "on"
    root_path: Annotated[
        str,
        Meta(pattern=r"^(/[A-Za-z0-9._~-]+)*$"),
        "Path prefix under which a gateway exposes the service, such as /geo; whether or not it strips the prefix.",
    ] = ""
    trusted_proxies: Annotated[
        str,
        "Addresses and networks of gateways, separated by commas, whose X-Forwarded-For, -Proto and -Host headers are "
        "trusted; from all others they are ignored.",
    ] = ""
    identity_secret: Annotated[
        str,
        "Secrets, separated by commas, of 32 characters or more each, with which a gateway that authenticates clients "
        "signs their account in the header X-Geomill-Identity; empty: the header is ignored.",
    ] = ""
    identity_seconds: Annotated[
        float,
        Meta(gt=0, le=3600),
        "Permitted difference between the time in that header and the clock of the database.",
    ] = 60.0
    cors_origins: Annotated[
        str,
        Meta(pattern=_ORIGINS),
        "Origins whose scripts may call the service (https://maps.example.org, without a path), separated by commas, "
        "or *; empty: none.",
    ] = ""
    max_connections: Annotated[
        int,
        Meta(ge=1, le=UNLIMITED),
        "Maximum number of open connections; further ones replace idle ones, or get status 503.",
    ] = 4096
    max_header_bytes: Annotated[
        int, Meta(ge=1024, le=65536), "Maximum size of the request line and headers; larger ones get status 431."
    ] = 16_384
    public_url: Annotated[
        str,
        Meta(pattern=_URL),
        "Base URL of the service for clients (https://…), used in links; empty: derived from the request.",
    ] = ""
    database_url: Annotated[
        str,
        Meta(pattern=r"^(postgres(ql)?://.*)?$"),
        "URL of the PostgreSQL database (postgresql://…); empty: embedded, in the data directory.",
    ] = ""
    link_secrets: Annotated[
        str,
        "Secrets, separated by commas, of 32 characters or more each, that sign the links of the local file store: the "
        "first one signs, all are accepted; empty: one is generated and kept in the data directory.",
    ] = ""
    postgres_bin_dir: Annotated[
        str, "Directory with postgres and initdb for the embedded database; empty: the newest version found."
    ] = ""
    postgres_user: Annotated[
        str, "User of the embedded database server if Geomill runs as root; empty: postgres or nobody."
    ] = ""
    ogr2ogr: Annotated[str, "Path of ogr2ogr; empty: the one on the PATH."] = ""
    sandbox: Annotated[
        Literal["strict", "best-effort"],
        "strict: refuse to start without network isolation, file-system isolation and resource limits, or if "
        "converters would run as root or could reach each other; best-effort: start anyway.",
    ] = "strict"
    converters: Annotated[
        int,
        Meta(ge=0, le=4096),
        "Number of files converted at the same time; 0: one per core that the service may use.",
    ] = 0
    suspended: Annotated[
        int,
        Meta(ge=0, le=4096),
        "Maximum number of files that are suspended while another account uses their converter; each keeps its memory; "
        "0: two per converter.",
    ] = 0
    waiting_room: Annotated[
        int,
        Meta(ge=1, le=UNLIMITED),
        "Maximum number of files that wait for a converter; further ones get status 503, as do files that could not be "
        "started within about a second.",
    ] = 512
    max_per_account: Annotated[
        int,
        Meta(ge=1, le=UNLIMITED),
        "Maximum number of files of one account in progress; further ones get status 429. Each gateway and each "
        "service on a database counts its own.",
    ] = 384
    conversion_seconds: Annotated[
        float,
        Meta(gt=0, le=YEAR),
        "Maximum duration of one run of the converter, and maximum computing time for looking through a file outside "
        "of it, before and during its conversion.",
    ] = 120.0
    file_seconds: Annotated[
        float, Meta(gt=0, le=YEAR), "Maximum total duration of all runs of the converter for one file."
    ] = 600.0
    conversion_memory_bytes: Annotated[
        int, Meta(ge=536_870_912, le=MOST_BYTES), "Maximum memory of one run of the converter, in bytes."
    ] = 2_684_354_560
    drain_seconds: Annotated[
        float, Meta(ge=0, le=YEAR), "How long the service finishes accepted work during shutdown."
    ] = 60.0
    drain_delay_seconds: Annotated[
        float,
        Meta(ge=0, le=YEAR),
        "How long the service still accepts work during shutdown while /readyz returns 503, so that load balancers "
        "notice.",
    ] = 0.0
    max_file_bytes: Annotated[
        int, Meta(ge=1, le=UNLIMITED), "Maximum size of an uploaded file for all plans, in bytes."
    ] = 104_857_600
    max_batch_bytes: Annotated[
        int, Meta(ge=1, le=UNLIMITED), "Maximum size of the body of a batch request, in bytes."
    ] = 209_715_200
    max_batch_files: Annotated[int, Meta(ge=1, le=1000), "Maximum number of files in a batch request."] = 20
    wait_seconds: Annotated[
        float,
        Meta(ge=0, le=60),
        "How long a request for the status of a job may wait for its end; longer waits are shortened.",
    ] = 60.0
    upload_idle_seconds: Annotated[
        float, Meta(gt=0, le=YEAR), "How long an upload may pause before it gets status 408."
    ] = 30.0
    upload_total_seconds: Annotated[float, Meta(gt=0, le=YEAR), "Maximum duration of an upload."] = 3600.0
    upload_min_bytes_per_second: Annotated[
        int,
        Meta(ge=1, le=MOST_BYTES),
        "Minimum average rate of an upload, measured from GEOMILL_UPLOAD_IDLE_SECONDS after its start.",
    ] = 4096
    lease_seconds: Annotated[
        int,
        Meta(ge=2, le=YEAR),
        "Time without a heartbeat after which a process is considered dead: other processes end its jobs, and requests "
        "that it served under an idempotency key can be retried.",
    ] = 30
    job_days: Annotated[
        int, Meta(ge=7, le=36_500), "Days for which a job can be looked up after its end; then it is deleted."
    ] = 90
    ledger_months: Annotated[
        int,
        Meta(ge=2, le=1_200),
        "Number of months before the current one for which each charge and each month's usage are kept; older ones "
        "are reduced to sums; a charge is kept at least as long as its job.",
    ] = 24
    revoked_key_days: Annotated[
        int, Meta(ge=1, le=36_500), "Days after its revocation at which an API key is deleted."
    ] = 365
    wallet_base_cents: Annotated[
        int, Meta(ge=0, le=MOST_CENTS), "Base price per file for accounts with prepaid credit, in US cents."
    ] = 5
    wallet_cents_per_mib: Annotated[
        int, Meta(ge=0, le=MOST_CENTS), "Additional price per started MiB, in US cents."
    ] = 1
    s3_bucket: Annotated[str, "Bucket for results; empty: results are kept in the data directory."] = ""
    s3_endpoint: Annotated[
        str, "URL of the S3-compatible server (https://…); empty: AWS, in the region of the bucket."
    ] = ""
    s3_public_endpoint: Annotated[
        str, "URL of that server for clients, used in download links; empty: the same URL."
    ] = ""
    s3_region: Annotated[str, Meta(min_length=1), "Region of the bucket."] = "us-east-1"
    s3_access_key: Annotated[str, "Access key; empty: the credentials of the environment (AWS_…, profile, role)."] = ""
    s3_secret_key: Annotated[str, "Secret key of the access key."] = ""
    s3_addressing: Annotated[
        Literal["auto", "path", "virtual"],
        "Whether the bucket is in the host name or the path of URLs; auto: host on AWS, otherwise path.",
    ] = "auto"
    s3_prefix: Annotated[str, "Prefix of all object keys."] = "results/"
    s3_sse: Annotated[Literal["", "AES256", "aws:kms"], "Encryption at rest to request from the server."] = ""
    s3_sse_key_id: Annotated[str, "Key for aws:kms; empty: the default key of the account."] = ""
    s3_regions: Annotated[
        str,
        "Further regions that accounts may choose, as JSON: names, and the settings that differ from those above, as "
        'in {"eu": {"bucket": "geomill-eu", "region": "eu-central-1"}}.',
    ] = ""
    s3_timeout_seconds: Annotated[
        float, Meta(ge=1, le=600), "Maximum duration of a request to the object store, including retries."
    ] = 30.0
    s3_attempts: Annotated[int, Meta(ge=1, le=10), "Maximum number of attempts of a request to the object store."] = 4
    s3_connections: Annotated[
        int,
        Meta(ge=1, le=1024),
        "Maximum number of connections to the object store for writing, and the same number for reading.",
    ] = 64
    nats_url: Annotated[
        str,
        Meta(pattern=rf"^({_NATS_SERVER}(,{_NATS_SERVER})*)?$"),
        "URL of the NATS server with JetStream (nats://…) between gateways and workers on many hosts, or several of a "
        "cluster, separated by commas; needs the extra `fleet`, GEOMILL_DATABASE_URL and GEOMILL_S3_BUCKET; empty: "
        "each process converts what it receives.",
    ] = ""
    inline_bytes: Annotated[
        int,
        Meta(ge=0, le=524_288),
        "Maximum size of an input that a gateway passes to workers through NATS while its client waits; larger ones "
        "go through the bucket.",
    ] = 262_144
    traces_url: Annotated[
        str,
        Meta(pattern=_URL),
        "URL of a trace collector for OTLP over HTTP (http://…/v1/traces); needs the extra `tracing`; empty: no spans "
        "are recorded.",
    ] = ""
    log_format: Annotated[
        Literal["auto", "console", "json"], "Format of the log; auto: console on a terminal, otherwise JSON."
    ] = "auto"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], "Minimum severity to log."] = "info"

    @property
    def data_path(self) -> Path:
        """`data_dir` as an absolute path.

        Raises:
            SettingsError: it is no text, so that neither PostgreSQL nor the sandbox could be told of it, or too long.
        """
        path = Path(self.data_dir).resolve()
        shown = str(path).encode(errors="replace").decode()
        if shown != str(path):
            raise SettingsError(f"GEOMILL_DATA_DIR is {shown!r}, which is not in UTF-8. Name another directory.")
        if (size := len(shown.encode())) > LONGEST_DATA_PATH:
            raise SettingsError(
                f"GEOMILL_DATA_DIR is a path of {size} bytes, more than {LONGEST_DATA_PATH}: GeoPackages could not be "
                "opened below it. Name another directory."
            )
        return path


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings from `environment`.

    `GEOMILL_X_FILE` names a file that contains the value of `GEOMILL_X`. Where nothing is the default, an empty value
    is one that is not set, as Compose writes it.

    Raises:
        SettingsError: a variable is unknown, out of bounds, no text, set twice, or names a file that cannot be read.
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
            message = f"{name} is not a setting of Geomill. Check the spelling; `geomill settings` lists all."
            raise SettingsError(message)
    undecoded = [name for name, value in values.items() if name != _DATA_DIR and _UNDECODED.search(value)]
    if undecoded:
        raise SettingsError(f"{undecoded[0]} is not text in UTF-8. Set it in this encoding.")
    optional = {field.encode_name for field in msgspec.structs.fields(Settings) if field.default is None}
    values = {name: value for name, value in values.items() if value or name not in optional}
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(_complaint(str(error), values)) from None


def _complaint(error: str, values: Mapping[str, str]) -> str:
    """Name the variable that is wrong, and what it may be."""
    wrong = re.search(r"`\$\.(\w+)`", error)
    if wrong is None:
        return error
    [field] = (field for field in msgspec.structs.fields(Settings) if field.encode_name == wrong[1])
    return f"{field.encode_name} {_requirement(field, values[field.encode_name])}"


def _requirement(field: msgspec.structs.FieldInfo, value: str) -> str:
    kind: Any = msgspec.inspect.type_info(field.type)
    while isinstance(kind, msgspec.inspect.Metadata | msgspec.inspect.UnionType):
        if isinstance(kind, msgspec.inspect.Metadata):
            kind = kind.type
        else:
            kind = next(one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType))
    if isinstance(kind, msgspec.inspect.LiteralType):
        permitted = ", ".join(str(one) or "nothing" for one in kind.values)
        return f"is {value!r}. Set it to one of these: {permitted}."
    if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        number = "a whole number" if isinstance(kind, msgspec.inspect.IntType) else "a number"
        bounds = ((" from", kind.ge), (" above", kind.gt), (" to", kind.le))
        limits = "".join(f"{words} {bound}" for words, bound in bounds if bound is not None)
        return f"is {value!r}. Set it to {number}{limits}."
    told = "is not valid" if field.encode_name.endswith("_URL") else f"is {value!r}"  # a URL may have a password
    return f"{told}. Expected: {meaning_of(field)}"


def meaning_of(field: msgspec.structs.FieldInfo) -> str:
    """Return the line of a setting in the documentation."""
    return next(text for text in get_args(field.type) if isinstance(text, str))


def _read_secret(variable: str, file_name: str) -> str:
    try:
        return Path(file_name).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{variable} names a file that cannot be read ({error.strerror}).") from None
    except ValueError:
        raise SettingsError(f"{variable} names a file that is not text.") from None
