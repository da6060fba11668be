"""Three hosts beside one: each has a gateway and a worker, and may use a share of this host's CPU."""

import asyncio
import math
from collections.abc import Sequence
from statistics import median

from bench.fleet.conversions import conversion, is_right, verdict
from bench.fleet.quotas import quotas
from bench.fleet.site import whole_fleet
from bench.load.client import Address
from bench.load.documents import small_document
from bench.load.load import OK, Load, put_load
from bench.load.scenarios import converted
from bench.load.site import address_of

HOSTS, CORES = 3, 0.3
GOAL = 0.9 * HOSTS
SECONDS, ROUNDS = 8.0, 5
CLIENTS = 4
"""Of each host."""
LEASE_SECONDS = 30
"""Longer than workers are frozen while one host is measured."""


def compare_hosts(share: float) -> bool:
    """Have one host, then three of them, convert for as long, several times; return whether the goal was reached.

    With a `share` below 1, for a shorter time and less often.
    """
    settings = {"GEOMILL_CONVERTERS": "1", "GEOMILL_LEASE_SECONDS": str(LEASE_SECONDS)}
    with quotas() as hosts:
        if hosts is None:
            print("three hosts: this user may not give hosts a share of the CPU")
            return True
        with whole_fleet(hosts.host, HOSTS, HOSTS, settings) as fleet:
            hosts.limit(CORES)
            key, site = fleet.keys().good[0], fleet.site
            addresses = [address_of(server.url) for server in site.gateways]
            pairs = []
            seconds = SECONDS * math.sqrt(share)
            for _ in range(1 + math.ceil(ROUNDS * math.sqrt(share))):
                with site.frozen(*site.workers[1:]):
                    one = asyncio.run(_rate(addresses[:1], key, seconds))
                pairs.append((one, asyncio.run(_rate(addresses, key, seconds))))
            charged = is_right(site)
    pairs = pairs[1:]  # the first round warms up
    ratio = median(three / one for one, three in pairs)
    rates = f"one {median(one for one, _ in pairs):.1f}/s, {HOSTS} of them {median(three for _, three in pairs):.1f}/s"
    print(f"hosts of {CORES} cores: {rates}: {ratio:.2f} x; {verdict(ratio, GOAL)}", flush=True)
    return charged and ratio >= GOAL


async def _rate(addresses: Sequence[Address], key: str, seconds: float) -> float:
    """How many small files are converted each second, with clients of all these gateways."""
    loads = [
        Load(requests=[conversion(address, key, small_document())], judge=converted, clients=CLIENTS, seconds=seconds)
        for address in addresses
    ]
    tallies = await asyncio.gather(*map(put_load, addresses, loads))
    assert not any(tally.errors for tally in tallies), [tally.errors for tally in tallies]
    return sum(len(tally.seconds_by_kind[OK]) / tally.elapsed_seconds for tally in tallies)
