"""Counts what a GeoParquet file contains, from its pages. For programs in the sandbox.

It shares no code with `parquet_writing`, which calls it in its own process: loading pyarrow takes longer than reading.
"""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from service.engine.jailed.readback import MOST_CELLS, Counted, finite

BATCH_ROWS = 16_384


def count(parquet: str) -> Counted:
    """The rows, geometries and values of the file `parquet`, in the form of `readback`.

    Raises:
        pa.ArrowException, OSError, ValueError, LookupError: the file is damaged.
    """
    with pq.ParquetFile(parquet, memory_map=False, pre_buffer=False) as file:
        names = file.schema_arrow.names
        geo = json.loads((file.metadata.metadata or {}).get(b"geo", b"{}"))
        geometry = geo.get("primary_column")
        is_small = file.metadata.num_rows * len(names) <= MOST_CELLS
        filled: Counter[str] = Counter()
        totals: dict[str, float] = {}
        counted = [name for name in names if is_small or name == geometry]
        for batch in file.iter_batches(BATCH_ROWS, columns=counted, use_threads=False):
            for name, values in zip(batch.schema.names, batch.columns, strict=True):
                filled[name] += len(values) - values.null_count
                if name != geometry and (types.is_integer(values.type) or types.is_floating(values.type)):
                    total = pc.sum(pc.abs(values.cast(pa.float64(), safe=False))).as_py() or 0.0
                    totals[name] = totals.get(name, 0.0) + total
        features = file.metadata.num_rows
    found: Counted = {"features": features, "geometries": filled[geometry], "has_m": False}
    if geometry is not None:
        found["has_z"] = any(kind.endswith(" Z") for kind in geo["columns"][geometry]["geometry_types"])
    if is_small:
        columns = (name for name in names if name != geometry)
        found["columns"] = {name: {"filled": filled[name], "total": finite(totals.get(name))} for name in columns}
    return found
