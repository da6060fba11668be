"""All named cases."""

from collections.abc import Mapping

from tests.hostile import (
    archives,
    databases,
    disguises,
    documents,
    inner_files,
    markup,
    names,
    parquet,
    shapefiles,
    texts,
    workbooks,
)
from tests.hostile.case import Case

CORPUS: Mapping[str, Case] = {
    name: case
    for module in (
        disguises,
        databases,
        documents,
        markup,
        archives,
        inner_files,
        workbooks,
        shapefiles,
        texts,
        parquet,
        names,
    )
    for name, case in module.CASES.items()
}
