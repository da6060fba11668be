"""The `id` of a feature beside its properties, which the converter turns into a number of its own or a column."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from service.dataloss.features import Feature


class IdTally:
    """Follows what the converter makes of ids.

    The first feature with an id decides: a whole number from 0 on numbers the feature and is lost on the way to other
    formats; anything else becomes a column `id`, unless the properties have one.
    """

    def __init__(self) -> None:
        self.count = 0
        self.is_column = False
        self._is_decided = False

    def column(self, features: Sequence[Feature]) -> list[Any]:
        """Count the ids of a batch and return those that are values of a column."""
        values = []
        for feature in features:
            properties = feature.properties or {}
            if feature.id is not UNSET and feature.id is not None:
                self.count += 1
                self._decide(feature.id, properties)
                if self.is_column and "id" not in properties:
                    values.append(feature.id)
            self._is_decided |= "id" in properties
        return values

    def _decide(self, value: Any, properties: dict[str, Any]) -> None:
        if not self._is_decided:
            numbers_features = type(value) is int and value >= 0
            self.is_column = not numbers_features and properties.get("id") is None
            self._is_decided = True
