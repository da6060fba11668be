"""The columns of a Parquet file as a GeoPackage can have them. Runs in the sandbox."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

PANDAS = b"pandas"


def written_names(names: Sequence[str]) -> list[str]:
    """`names` without zero bytes and empty ones, and without any that differ from another in case alone.

    SQLite takes `A` for `a`, but not `Ä` for `ä`.
    """
    taken: set[bytes] = set()
    found = []
    for number, raw in enumerate(names, 1):
        name = base = raw.replace("\0", "") or f"field_{number}"
        again = 1
        while name.encode().lower() in taken:
            again += 1
            name = f"{base}_{again}"
        taken.add(name.encode().lower())
        found.append(name)
    return found


def said_by_pandas(file: Any) -> dict[str, Any]:
    """What pandas says of a table that it has written; nothing if it has not."""
    said: dict[str, Any] = json.loads((file.schema_arrow.metadata or {}).get(PANDAS, b"{}"))
    return said


def described_index(file: Any) -> dict[str, range]:
    """The index of rows, by its name, that pandas describes instead of storing it, because it is regular.

    One without a name only numbers the rows. A file of which another program has changed the rows has none.
    """
    indexes = {
        index["name"]: range(index["start"], index["stop"], index["step"])
        for index in said_by_pandas(file).get("index_columns", [])
        if isinstance(index, dict) and index.get("kind") == "range"
    }
    return {
        name: numbers
        for name, numbers in indexes.items()
        if isinstance(name, str) and name not in file.schema_arrow.names and len(numbers) == file.metadata.num_rows
    }


def part_of(index: range, start: int, rows: int) -> pa.Array:
    """The numbers of some `rows` of an index."""
    return pa.array(index[start : start + rows], pa.int64())
