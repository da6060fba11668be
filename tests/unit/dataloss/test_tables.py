"""The report for files with several layers, each of which becomes a Shapefile."""

from service.dataloss.rules import report
from service.dataloss.tables import findings_of
from service.dataloss.warnings import extra_warnings
from service.formats.facts import Facts, Field, FieldType, Layer
from service.formats.registry import find_output
from service.formats.values import value_warnings

LONG = Field("name", FieldType.TEXT, 300, 1, filled=2, empty=1, like_numbers=2)


def layer(name: str, kind: str, *fields: Field) -> Layer:
    """A layer of two features."""
    return Layer(name=name, features=2, geometry_types={kind: 2}, fields=fields)


def test_equal_names_in_different_layers_do_not_collide() -> None:
    """Nor do layers of different families mix; only overlong names are reported, once."""
    renamed = Field("population_2024")
    found = report(*findings_of(Facts(layers=(layer("a", "Point", renamed), layer("b", "Polygon", renamed)))))
    assert [entry.original for entry in found.field_name_truncations] == ["population_2024"]
    assert (found.field_name_collisions, found.geometry_coercions, found.has_data_loss) == ((), (), False)
    assert found.feature_count == 4


def test_losses_within_a_layer_name_it() -> None:
    """Colliding names and split geometries in one of two layers."""
    both = Layer(
        name="mixed",
        features=2,
        geometry_types={"Point": 1, "Polygon": 1},
        fields=(Field("aaaaaaaaaab"), Field("aaaaaaaaaac")),
    )
    found = report(*findings_of(Facts(layers=(layer("a", "Point", LONG), both))))
    assert [entry.fields for entry in found.field_name_collisions] == [("aaaaaaaaaab", "aaaaaaaaaac")]
    (entry,) = found.geometry_coercions
    assert entry.detail.startswith("Layer 'mixed': The features hold 1 Point")


def test_values_are_counted_in_all_layers() -> None:
    """Under their shared name, in the report and in any target's warnings."""
    layers = (layer("a", "Point", LONG), layer("b", "Point", LONG))
    scans = findings_of(Facts(layers=layers))
    (cut,) = report(*scans).value_truncations
    assert (cut.field, cut.max_length, cut.affected_features) == ("name", 300, 2)
    assert extra_warnings(*scans) == ["2 values in name: a Shapefile cannot tell empty text from a missing value."]
    assert any("4 values of 'name'" in warning for warning in value_warnings(find_output("gml"), layers))
