"""The plans (interface 2.5 and 8): the table of allowances and prices."""

from typing import Literal

import msgspec

from service.metering.pricing import MIB

GIB = 1 << 30


class Plan(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One plan, with the members of the listing (interface 2.5)."""

    id: str
    name: str
    owner: Literal["user", "organization"]
    monthly_price_usd: int
    annual_price_usd: int
    monthly_data_bytes: int
    max_file_bytes: int
    monthly_conversions: int
    retention_hours: int = 48
    storage_region_choice: bool = False
    priority_support: bool = False


PLANS: tuple[Plan, ...] = (
    Plan(
        id="free",
        name="Free",
        owner="user",
        monthly_price_usd=0,
        annual_price_usd=0,
        monthly_data_bytes=50 * MIB,
        max_file_bytes=5 * MIB,
        monthly_conversions=10,
        retention_hours=4,
    ),
    Plan(
        id="personal",
        name="Personal",
        owner="user",
        monthly_price_usd=9,
        annual_price_usd=90,
        monthly_data_bytes=GIB,
        max_file_bytes=25 * MIB,
        monthly_conversions=500,
    ),
    Plan(
        id="team",
        name="Team",
        owner="organization",
        monthly_price_usd=49,
        annual_price_usd=490,
        monthly_data_bytes=10 * GIB,
        max_file_bytes=100 * MIB,
        monthly_conversions=5000,
    ),
    Plan(
        id="business",
        name="Business",
        owner="organization",
        monthly_price_usd=199,
        annual_price_usd=1990,
        monthly_data_bytes=50 * GIB,
        max_file_bytes=100 * MIB,
        monthly_conversions=25000,
        storage_region_choice=True,
        priority_support=True,
    ),
)

BY_ID = {plan.id: plan for plan in PLANS}

WALLET_RETENTION_HOURS = 48
"""How long outputs of prepaid-credit accounts are kept: as on paid plans, since the interface defines nothing else."""
