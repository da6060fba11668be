"""Conversions: one uploaded file, or several."""

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.idempotency import KeyClaim
from service.accounts.keys import Caller
from service.formats.request import ConversionRequest
from service.http.api import params
from service.http.api.auth import KeyedHandler
from service.http.api.inputs import BATCH, CONVERSION
from service.http.api.ratelimit import Remaining
from service.http.api.render import accepted, accepted_batch, batch_result, conversion_result, of_job
from service.http.api.result import StreamedResponse, result_headers
from service.http.api.schemas import json_response
from service.http.api.upload import receive_form
from service.http.promised import promised
from service.ids import JobId, uuid7
from service.intake.form import Form, FormSpec
from service.intake.workspace import Workspace
from service.jobs.dispatch import ended
from service.jobs.lifecycle import ENDED, Status
from service.jobs.promises import Promise
from service.jobs.records import Job
from service.metering.balance import Balance
from service.usecases.convert_batch import convert_batch, naming, outcomes
from service.usecases.idempotency import fingerprint, still_to_do
from service.usecases.jobs import with_link
from service.usecases.read_balance import read_left
from service.usecases.read_result import read_result, refuse_if_downloading
from service.usecases.services import Services
from service.usecases.steps.accepting import ConversionOrder

_ONE = CONVERSION.spec()
_MANY = BATCH.spec()


async def _convert_one(request: Request, caller: Caller, *, always_with_balance: bool) -> Response:
    download = params.read_download(request.query_params, request.headers)
    with promised(request, caller) as promise:
        exchange = _ConversionExchange(request, caller, _ONE, promise)
        if download:
            refuse_if_downloading(caller.account_id)
        async with exchange.services.work_area.workspace(caller.account_id) as workspace:
            form = await exchange.receive(workspace)
            with_balance = params.read_include_wallet(form.fields) or always_with_balance
            jobs = await exchange.convert(form, [params.read_conversion(form.fields)], workspace)
    if exchange.should_return_202(jobs):
        return accepted(request, jobs[0])
    notes = params.ignored_fields(request.query_params, form, _ONE.fields)
    headers = of_job(request, jobs[0], notes)
    if download and jobs[0].status is not Status.FAILED:
        pieces = read_result(exchange.services, caller.account_id, jobs[0])
        return StreamedResponse(await anext(pieces), pieces, {**headers, **result_headers(jobs[0])})
    linked = await with_link(exchange.services, jobs[0])
    left = await read_left(exchange.services, caller.account_id, jobs[0]) if with_balance else None
    if isinstance(left, Balance):
        request.state.remaining = Remaining(conversions=left.remaining_conversions, size_bytes=left.remaining_bytes)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if download else HTTPStatus.OK
    return json_response(conversion_result(request, linked, notes, left), status, headers)


convert_file: KeyedHandler = partial(_convert_one, always_with_balance=False)
"""Convert one file (interface 4.1)."""

convert_upload: KeyedHandler = partial(_convert_one, always_with_balance=True)
"""Convert one file and report the balance (interface 4.3)."""


async def convert_files(request: Request, caller: Caller) -> Response:
    """Convert several files, each on its own (interface 4.2)."""
    params.refuse_download(request.query_params)
    with promised(request, caller) as promise:
        exchange = _ConversionExchange(request, caller, _MANY, promise)
        async with exchange.services.work_area.workspace(caller.account_id) as workspace:
            form = await exchange.receive(workspace)
            jobs = await exchange.convert(form, params.read_batch(form.fields, len(form.files)), workspace)
    services = exchange.services
    linked = [await with_link(services, job) for job in jobs]
    if exchange.should_return_202(jobs):
        return accepted_batch(request, linked)
    with naming([ended(job) for job in jobs]):
        balance = await services.ledger.balance(caller.account_id)
    request.state.remaining = Remaining(conversions=balance.remaining_conversions, size_bytes=balance.remaining_bytes)
    notes = params.ignored_fields(request.query_params, form, _MANY.fields)
    return json_response(batch_result(request, linked, balance, notes))


class _ConversionExchange:
    """One conversion request between its headers and its ended jobs."""

    def __init__(self, request: Request, caller: Caller, form: FormSpec, promise: Promise) -> None:
        self.services: Services = request.state.services
        self._request = request
        self._caller = caller
        self._promise = promise
        self._key = params.read_idempotency_key(request.headers)
        self._async = params.wants_async(request.headers)
        self._form = msgspec.structs.replace(form, digest=self._key is not None or not self.services.converts)

    async def receive(self, workspace: Workspace) -> Form:
        self.services.runner.require_reachable()
        return await receive_form(self._request, self._form, workspace)

    async def convert(self, form: Form, requests: Sequence[ConversionRequest], workspace: Workspace) -> list[Job]:
        """Return the ended jobs, or accepted ones if the client does not want to wait."""
        now = self.services.clock()
        orders = [
            ConversionOrder(
                job_id=JobId(uuid7(now)),
                account_id=self._caller.account_id,
                upload=upload,
                request=request,
                workspace=workspace,
                durable=self._async,
                key=self._key,
            )
            for upload, request in zip(form.files, requests, strict=True)
        ]
        async with still_to_do(self.services, self._claim(form, orders), orders) as files:
            self._promise.release()  # from here on the places in the queue count instead
            submissions = await convert_batch(self.services, files)
        if self._async:
            return [submission.job for submission in submissions]
        jobs = await outcomes(submissions)
        if isinstance(files[-1], ConversionOrder):  # the job of an earlier request records the balance at that time
            self._request.state.remaining = _remaining(jobs)
        return jobs

    def should_return_202(self, jobs: Sequence[Job]) -> bool:
        """Whether to respond that the jobs were accepted; if all have ended, the normal response follows."""
        return self._async and any(job.status not in ENDED for job in jobs)

    def _claim(self, form: Form, orders: Sequence[ConversionOrder]) -> KeyClaim | None:
        if self._key is None:
            return None
        return KeyClaim(
            account_id=self._caller.account_id,
            key=self._key,
            fingerprint=fingerprint(self._request.scope["route"].path, form),
            job_ids=tuple(order.job_id for order in orders),
        )


def _remaining(jobs: Sequence[Job]) -> Remaining:
    """The balance after these jobs, as far as known: that of the last settlement, or that nothing is left."""
    details = jobs[-1].details
    conversions = 0 if details.limit == "conversions" else details.remaining_conversions
    return Remaining(conversions=conversions, size_bytes=details.remaining_bytes)
