"""Every pair of hosts that talk to each other loses its network for two leases, one pair after the other.

Jobs are promised before and during each partition. Afterwards every one of them ends within a lease and two seconds of
the network's return, is charged once and has its object.
"""

import argparse
import itertools
import time

import httpx

from bench.fleet.hosts import Network, network
from bench.fleet.site import WholeFleet, whole_fleet
from bench.load.documents import small_document
from bench.load.paths import SINGLE
from tests.fleet.site import LEASE_SECONDS, Site

GATEWAYS, WORKERS = ("gateway-1", "gateway-2"), ("worker-1", "worker-2")
SERVERS = ("postgres", "nats", "s3")
PAIRS = list(itertools.product(("gateway-1", "worker-1"), SERVERS))
LEASES = 2
ALLOWED_SECONDS = LEASE_SECONDS + 2.0
FEW = 4
TIMEOUT_SECONDS = 120.0
_OPEN = "SELECT id::text, original_file_name, status, attempt, worker_id::text FROM job WHERE completed_at IS NULL"
_SUMS = """
SELECT (SELECT count(*) FROM job WHERE status = 'Completed') AS completed, (SELECT count(*) FROM ledger) AS charged,
       (SELECT count(*) FROM job WHERE status <> 'Completed' AND id::text = ANY($1)) AS failed
"""


def run(_options: argparse.Namespace) -> bool:
    """Run the test and print what came of it; return whether nothing was wrong."""
    with network() as net:
        if not net.can_part:
            print("partitions: this user may not make hosts that can be parted")
            return True
        with whole_fleet(net.host, len(GATEWAYS), len(WORKERS)) as fleet:
            key = fleet.keys().good[0]
            outcomes = [_part(fleet, net, one, other, key) for one, other in PAIRS]
    return all(outcomes)


def _part(fleet: WholeFleet, net: Network, one: str, other: str, key: str) -> bool:
    site = fleet.site
    promised = _promise(site, key)
    net.part(fleet.hosts[one], fleet.hosts[other])
    back_at = time.monotonic() + LEASES * LEASE_SECONDS
    while time.monotonic() < back_at:
        promised += _promise(site, key)
        time.sleep(LEASE_SECONDS / 3)
    net.mend()
    since = time.monotonic()
    while site.rows(_OPEN) and time.monotonic() - since < TIMEOUT_SECONDS:
        time.sleep(0.1)
    took, left = time.monotonic() - since, site.rows(_OPEN)
    while site.messages() and time.monotonic() - since < TIMEOUT_SECONDS:
        time.sleep(0.1)
    site.sweep()
    [sums] = site.rows(_SUMS, promised)
    found = site.audit()
    is_right = not left and not found and not sums["failed"] and sums["completed"] == sums["charged"]
    verdict = "right" if is_right else f"WRONG: {left} {found} {sums}"
    late = "" if took <= ALLOWED_SECONDS else f", more than {ALLOWED_SECONDS:.0f} s"
    print(
        f"{one} | {other}: {len(promised)} promised, all ended {took:.1f} s after the network's return{late}; {verdict}"
    )
    return is_right


def _promise(site: Site, key: str) -> list[str]:
    """Have some jobs promised by every gateway that can; return their ids."""
    promised = []
    for gateway, number in itertools.product(site.gateways, range(FEW)):
        try:
            answer = httpx.post(
                gateway.url + SINGLE,
                files={"file": (f"{number}.geojson", small_document())},
                data={"outputFormat": "Csv"},
                headers={"X-API-Key": key, "Prefer": "respond-async"},
                timeout=2.0,
            )
        except httpx.HTTPError:  # this gateway is cut off from what it needs
            break
        if answer.status_code == httpx.codes.ACCEPTED:
            promised.append(answer.json()["jobId"])
    return promised
