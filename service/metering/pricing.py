"""What a conversion costs an account that spends prepaid credit (interface 6)."""

import msgspec

MIB = 1 << 20
MOST_CREDIT_CENTS = 10**12
"""The largest prepaid credit: the prices of failed conversions can always be returned to it."""


class Pricing(msgspec.Struct, frozen=True):
    """Prices in US cents."""

    base_cents: int = 5
    cents_per_mib: int = 1

    def price_cents(self, size_bytes: int) -> int:
        """Return the price of a file of `size_bytes`: the base price plus the price of every started MiB."""
        return self.base_cents + -(-size_bytes // MIB) * self.cents_per_mib
