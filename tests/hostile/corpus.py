"""All named cases."""

from collections.abc import Mapping

from tests.hostile import (
    archives,
    databases,
    disguises,
    documents,
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
    for module in (disguises, databases, documents, markup, archives, workbooks, shapefiles, texts, parquet, names)
    for name, case in module.CASES.items()
}
