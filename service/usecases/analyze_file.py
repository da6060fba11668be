"""What a conversion to Shapefile would lose, without converting, counting or recording anything (specification 4.4)."""

from service.dataloss.rules import Report, not_applicable, report
from service.identifiers import AccountId
from service.intake.form import Upload
from service.usecases.converter import converter
from service.usecases.look_at_source import is_document, scan_document
from service.usecases.recognise import recognise
from service.usecases.services import Services


async def analyze_file(services: Services, account_id: AccountId, upload: Upload) -> Report:
    """Report on a GeoJSON document; the report on any other input says that it does not apply.

    Raises:
        Rejection: the file is none that the service accepts, or no GeoJSON though its name says so.
        Overloaded, TooManyRequests: there is no converter to scan it in.
    """
    source = await recognise(upload)
    if not is_document(source):
        return not_applicable()
    [place] = services.runner.take_places(account_id)
    async with converter(place) as run:
        return report(await scan_document(services.engine, run, source.path))
