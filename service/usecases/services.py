"""The capabilities that the use cases need, opened once by `app`."""

from collections.abc import Mapping

import msgspec

from sandbox.pool import Pool
from service.accounts.idempotency import IdempotencyKeys
from service.accounts.identity import TrustedGateway
from service.accounts.keys import Authenticator
from service.clock import Clock
from service.db.pool import Database
from service.engine.convert import Engine
from service.intake.form import IntakeLimits
from service.intake.workspace import WorkArea
from service.jobs.dispatch import LocalRunner
from service.jobs.ends import EndWatch
from service.jobs.leases import Leases
from service.jobs.promises import Promises
from service.jobs.register import JobRegister
from service.metering.history import History
from service.metering.ledger import Ledger
from service.metering.usage import UsageReports
from service.siblings import Siblings
from service.storage.port import Storage


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """All capabilities."""

    clock: Clock
    database: Database
    authenticator: Authenticator
    gateway: TrustedGateway
    idempotency: IdempotencyKeys
    ledger: Ledger
    history: History
    usage: UsageReports
    jobs: JobRegister
    leases: Leases
    engine: Engine
    unavailable_formats: Mapping[str, str]
    storage: Storage
    promises: Promises
    ends: EndWatch
    most_wait_seconds: float
    runner: LocalRunner
    intake: IntakeLimits
    work_area: WorkArea
    pool: Pool
    siblings: Siblings
