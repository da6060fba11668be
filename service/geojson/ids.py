"""The `id` of a feature outside its properties, which the converter makes a feature id or a column."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from service.formats.facts import FieldType
from service.geojson.features import Feature
from service.geojson.fields import FieldTally, joined_type


class IdTally:
    """Tracks how the converter treats ids.

    Non-negative integers become feature ids, which other formats lose. The first id of another kind creates a column
    `id`, unless the properties already have one: then ids fill its gaps, and others than it holds are lost.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._count = 0
        self._alone = 0
        """How many ids are in features without a property `id`."""
        self._hidden = 0
        """How many are in features whose property `id` has another value, which is the one that is read."""
        self._values = FieldTally()
        self._number_features = False
        self._make_column = False
        self._has_column = False

    def add(self, features: Sequence[Feature], *, has_property: bool) -> None:
        """Count the ids of a batch; `has_property` says whether an earlier feature has a property `id`."""
        gaps = []
        self._has_column |= has_property
        for feature in features:
            properties = feature.properties or {}
            if feature.id is not UNSET and feature.id is not None:
                self._count += 1
                self._decide(feature.id, properties)
                if "id" not in properties:
                    gaps.append(feature.id)
                elif properties["id"] != feature.id and str(properties["id"]) != str(feature.id):
                    self._hidden += 1
            self._has_column |= "id" in properties
        self._alone += len(gaps)
        if gaps:
            self._values.add(gaps)

    def column(self, properties: FieldTally | None) -> FieldTally | None:
        """The column `id`, made of ids and `properties` of that name; ids that do not fit are counted as dropped."""
        if not self._count:
            return properties
        ids = self._values
        self.dropped = self._hidden
        if self._number_features:
            self.dropped = self._alone + self._hidden
            return properties
        if self._make_column and ids.type is not FieldType.INTEGER:
            ids.type = FieldType.TEXT
        column = properties or FieldTally()
        joined = joined_type(column.type, ids.type or FieldType.TEXT)
        if self._make_column or column.type in {None, joined}:
            column.type = joined
            column.merge(ids)
        else:
            self.dropped += ids.values
        return column if column.values else None

    def _decide(self, value: Any, properties: dict[str, Any]) -> None:
        if self._has_column:
            return
        if type(value) is int:
            self._number_features = value >= 0
        if not self._number_features and properties.get("id") is None:
            self._make_column = self._has_column = True
