"""Reports what a conversion to Shapefile would lose, without converting or recording anything (interface 4.4)."""

import msgspec

from service.dataloss.rules import Report, not_applicable, report
from service.dataloss.warnings import extra_warnings
from service.engine.convert import Engine
from service.engine.workspace import Run
from service.formats.detect import Depth
from service.formats.format import reading_of
from service.formats.source import Source
from service.geojson.findings import Scan
from service.geojson.refusals import OTHER_JSON, Unreadable
from service.geojson.warnings import reading_warnings
from service.ids import AccountId
from service.intake.form import Upload
from service.intake.workspace import Workspace
from service.jobs.promises import Promise
from service.usecases.converter import RunCrashed, converter
from service.usecases.detect_format import detect_received
from service.usecases.inspect_source import is_document, require_features, scan_document
from service.usecases.services import Services

NOT_ANALYSED = "The file is {}, not GeoJSON. Only GeoJSON can be analyzed, but the file can be converted."


class Analysed(msgspec.Struct, frozen=True):
    """The report, and warnings about losses for which it has no member."""

    report: Report
    warnings: tuple[str, ...] = ()


async def analyze_file(
    services: Services, account_id: AccountId, upload: Upload, workspace: Workspace, promise: Promise
) -> Analysed:
    """Report on a GeoJSON document; the report on any other input says that it does not apply.

    From its beginning to its end, it has one of the account's places in the queue, instead of what `promise` promised.

    Raises:
        Rejection: the service does not accept the file, or its name wrongly says GeoJSON.
        Overloaded, TooManyRequests: there is no place for the file.
    """
    promise.release()
    [ticket] = services.runner.enqueue(account_id)
    with converter(services.pool, ticket) as run:
        _, source = await detect_received(upload, services.engine.limits, account_id, workspace, Depth.DOCUMENTS)
        if not is_document(source):
            is_other_json = bool(reading_of(source.format).told_by)
            if is_other_json:
                await require_features(source)
            return Analysed(not_applicable(), (NOT_ANALYSED.format(source.format.title),) if is_other_json else ())
        try:
            found = await _scan(services.engine, run, source)
        except Unreadable as unreadable:
            if unreadable.reason not in OTHER_JSON:
                raise
            return Analysed(not_applicable(), (NOT_ANALYSED.format(OTHER_JSON[unreadable.reason]),))
        return Analysed(report(found), (*reading_warnings(found), *extra_warnings(found)))


async def _scan(engine: Engine, run: Run, source: Source) -> Scan:
    """Scan the document; scan it once more if the first run crashes."""
    try:
        return await scan_document(engine, run, source)
    except RunCrashed:
        return await scan_document(engine, run, source)
