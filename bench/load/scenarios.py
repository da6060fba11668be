"""The table of scenarios: requests, the shape of the load, and the purpose."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from bench.load.client import LoadRequest, LoadResponse, get, upload
from bench.load.documents import document, small_document
from bench.load.load import OK, Judge, Load, LoadShape
from bench.load.paths import JOBS, SINGLE
from bench.load.site import Site
from bench.measure.meter import MEGABYTE

LARGE_MB = 90
AT_ONCE = 8
SLOW_CLIENTS = 32
SLOW_BYTES_PER_SECOND = 4000
PROBES_PER_SECOND = 50.0
ONLOOKERS_PER_SECOND = 40.0
LEAD_SECONDS = 2.0
"""How long an overload goes on before what is served counts: longer than an accepted conversion waits.

Without it, the conversions that wait when the load ends were missing, a fifth of a window of four seconds.
"""
REFUSED_UPLOADS = 300
MIXED_KB = ((1, 60), (100, 30), (1000, 9), (10_000, 1))
"""Sizes and how many of a hundred requests have them."""

WRONG_KEY = "gm_" + "0" * 38
SUCCEEDED = b'"success":true'
ZIP = b"PK\x03\x04"
"""How an archive begins, after the length of the first chunk if the response has any."""
SUCCESS = range(200, 300)
UNAUTHORIZED = 401


def _judging(is_expected: Callable[[LoadResponse], bool]) -> Judge:
    return lambda answer: OK if is_expected(answer) else _kind(answer)


def _kind(answer: LoadResponse) -> str:
    """What else it is: the limit, the problem's code, or the status."""
    try:
        members = msgspec.json.decode(answer.body, type=dict[str, object])
    except msgspec.DecodeError:
        return f"status {answer.status}"
    if members.get("limit"):
        return f"limit {members['limit']}"
    return str(members.get("code") or f"status {answer.status}: {members.get('error', '')}")


converted = _judging(lambda answer: answer.status in SUCCESS and SUCCEEDED in answer.body)
"""Every file is to be converted."""
delivered = _judging(lambda answer: answer.status in SUCCESS and ZIP in answer.body)
"""Every response is to be the result itself, a ZIP archive."""
answered = _judging(lambda answer: answer.status in SUCCESS)
"""Every request is to be answered with success."""
shown = _judging(lambda answer: answer.status in SUCCESS or b'"intake":"full"' in answer.body)
"""Every request is to be answered with success, or that the service is full."""
refused_key = _judging(lambda answer: answer.status == UNAUTHORIZED)
"""Every request is to be refused for its key."""
refused_limit = _judging(lambda answer: _kind(answer) == "limit wallet")
"""Every file is to be refused by a limit."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Requests in a shape, each judged; `beside` names a scenario that goes on meanwhile and is measured too.

    `times_best` is its rate in multiples of the best that was measured.
    """

    about: str
    shape: LoadShape
    requests: Callable[[Site], Sequence[LoadRequest]]
    judge: Judge = converted
    times_best: float = 0.0
    beside: str = ""
    needs: Literal["", "crowd", "spent"] = ""
    """Which accounts the site must have besides the usual one."""

    def load(self, site: Site, seconds: float, best_rate: float) -> Load:
        """Return the load that this is on `site`."""
        shape = msgspec.structs.asdict(self.shape)
        shape["rate"] = self.shape.rate or self.times_best * best_rate
        return Load(requests=self.requests(site), judge=self.judge, seconds=seconds, **shape)

    def can_run(self, site: Site) -> bool:
        """Whether the site has the accounts that it needs."""
        return not self.needs or bool(getattr(site, self.needs))


def _conversion(site: Site, key: str, content: bytes, query: str = "") -> LoadRequest:
    large = len(content) > MEGABYTE
    return upload(
        site.address,
        site.prefix + SINGLE + query,
        {"X-API-Key": key},
        name="places.geojson",
        content=content,
        copy=not large,
    )


def _of_keys(keys: Callable[[Site], Iterable[str]], query: str = "") -> Callable[[Site], list[LoadRequest]]:
    """Conversions of small files with these keys in turn."""
    return lambda site: [_conversion(site, key, small_document(), query) for key in keys(site)]


_small = _of_keys(lambda site: [site.key])
_small_delivered = _of_keys(lambda site: [site.key], "?download=true")
_small_of_crowd = _of_keys(lambda site: site.crowd)
_spent = _of_keys(lambda site: [site.spent])


def _of_size(megabytes: int) -> Callable[[Site], list[LoadRequest]]:
    return lambda site: [_conversion(site, site.key, document(megabytes * MEGABYTE))]


def _mixed(site: Site) -> list[LoadRequest]:
    by_size = [[_conversion(site, site.key, document(size * 1000))] * share for size, share in MIXED_KB]
    requests = [request for requests in by_size for request in requests]
    random.Random(1).shuffle(requests)
    return requests


def _health(site: Site) -> list[LoadRequest]:
    return [get(site.address, f"{site.prefix}/healthz", {})]


def _wrong_key(content: Callable[[], bytes]) -> Callable[[Site], list[LoadRequest]]:
    return lambda site: [_conversion(site, WRONG_KEY, content())]


def _list(site: Site) -> list[LoadRequest]:
    return [get(site.address, f"{site.prefix}{JOBS}?limit=20", {"X-API-Key": site.key})]


def _status(site: Site) -> list[LoadRequest]:
    paths = [f"{site.prefix}{JOBS}/{job}/status" for job in site.jobs]
    return [get(site.address, path, {"X-API-Key": site.key}) for path in paths]


def _looks(site: Site) -> list[LoadRequest]:
    paths = ("/healthz", "/readyz", "/metrics")
    return [*(get(site.address, site.prefix + path, {}) for path in paths), *_status(site)[:1]]


def _at_once(
    clients: int,
    about: str,
    requests: Callable[[Site], Sequence[LoadRequest]],
    judge: Judge = converted,
    *,
    beside: str = "",
    needs: Literal["", "crowd", "spent"] = "",
) -> Scenario:
    shape = LoadShape(clients=clients)
    about = f"{about}, {clients} at a time"
    return Scenario(about=about, shape=shape, requests=requests, judge=judge, beside=beside, needs=needs)


def _too_many(times: float) -> Scenario:
    return Scenario(
        about=f"small conversions of many accounts, arriving at {times:g} times the best rate",
        shape=LoadShape(lead_seconds=LEAD_SECONDS),
        times_best=times,
        requests=_small_of_crowd,
        beside="onlookers",
        needs="crowd",
    )


def _size(megabytes: int) -> Scenario:
    about = f"one GeoJSON of {megabytes} MB to Shapefile"
    return Scenario(about=about, shape=LoadShape(clients=1, count=1), requests=_of_size(megabytes))


_SMALL = "small GeoJSON to Shapefile"
_DELIVERED = "the same, with the result as the response"
SCENARIOS: dict[str, Scenario] = {
    "floor": _at_once(64, "GET /healthz: the HTTP floor", _health, answered),
    **{f"burst-{clients}": _at_once(clients, _SMALL, _small) for clients in (1, 8, 64, 256)},
    **{f"delivery-{clients}": _at_once(clients, _DELIVERED, _small_delivered, delivered) for clients in (1, 8)},
    "steady": Scenario(
        about="small conversions, arriving at half the best rate", shape=LoadShape(), times_best=0.5, requests=_small
    ),
    "overload": _too_many(10),
    "flood": _too_many(50),
    "mixed": _at_once(AT_ONCE, "1 KB to 10 MB", _mixed),
    "many-accounts": _at_once(64, "small conversions of 64 accounts", _small_of_crowd, needs="crowd"),
    "refused-key": _at_once(32, "small uploads with a wrong key", _wrong_key(small_document), refused_key),
    "refused-limit": _at_once(32, "small uploads of an account without credit", _spent, refused_limit, needs="spent"),
    "refused-uploads": Scenario(
        about=f"{REFUSED_UPLOADS} uploads of 4 MB with a wrong key, 32 at a time",
        shape=LoadShape(clients=32, count=REFUSED_UPLOADS),
        requests=_wrong_key(lambda: document(4 * MEGABYTE)),
        judge=refused_key,
    ),
    "slow-clients": _at_once(AT_ONCE, "small conversions beside slow clients", _small, beside="dripping"),
    "dripping": Scenario(
        about=f"{SLOW_CLIENTS} clients that send {SLOW_BYTES_PER_SECOND // 1000} kB a second",
        shape=LoadShape(clients=SLOW_CLIENTS, bytes_per_second=SLOW_BYTES_PER_SECOND),
        requests=_small,
    ),
    "polling": _at_once(AT_ONCE, "the status of jobs", _status, answered),
    "listing": _at_once(AT_ONCE, "the 20 newest jobs", _list, answered),
    "size-1": _size(1),
    "size-10": _size(10),
    "size-90": _size(LARGE_MB),
    "large-uploads": Scenario(
        about=f"{AT_ONCE} uploads of {LARGE_MB} MB at once, until they are converted",
        shape=LoadShape(clients=AT_ONCE, count=AT_ONCE),
        requests=_of_size(LARGE_MB),
        beside="probe",
    ),
    "onlookers": Scenario(
        about=f"health, readiness, metrics and the status of jobs, {ONLOOKERS_PER_SECOND:g} requests a second",
        shape=LoadShape(rate=ONLOOKERS_PER_SECOND),
        requests=_looks,
        judge=shown,
    ),
    "probe": Scenario(
        about=f"GET /healthz {PROBES_PER_SECOND:g} times a second",
        shape=LoadShape(rate=PROBES_PER_SECOND),
        requests=_health,
        judge=answered,
    ),
}

STANDARD = tuple(name for name in SCENARIOS if name not in {"dripping", "onlookers", "probe"})
"""What runs where nothing is named; `dripping`, `onlookers` and `probe` go beside others."""
