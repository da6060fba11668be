"""Settings come from the environment, and invalid ones are named (interface 10)."""

import os
from pathlib import Path

import msgspec
import pytest

from service.settings import LONGEST_DATA_PATH, Settings, SettingsError, read_settings


def test_without_variables_every_setting_has_its_default() -> None:
    """Other programs' variables are ignored."""
    assert read_settings({"PATH": "/bin"}) == Settings()


def test_text_becomes_the_setting_s_type() -> None:
    """For example, a number."""
    assert read_settings({"GEOMILL_PORT": "9000"}).port == 9000


@pytest.mark.parametrize(
    ("name", "value"), [("GEOMILL_PORT", "x"), ("GEOMILL_PORT", "70000"), ("GEOMILL_SANDBOX", "x")]
)
def test_a_value_outside_its_bounds_is_named(name: str, value: str) -> None:
    """The message begins with the reason and names the variable."""
    with pytest.raises(SettingsError, match=name):
        read_settings({name: value})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GEOMILL_CONVERSION_SECONDS", "inf", "above 0 to 31536000"),
        ("GEOMILL_LEASE_SECONDS", "99999999999999999999", "from 2 to 31536000"),
        ("GEOMILL_CONVERSION_MEMORY_BYTES", "1", "from 536870912"),
        ("GEOMILL_CONVERSION_MEMORY_BYTES", "99999999999999", "is '99999999999999'.* to 1099511627776"),
        ("GEOMILL_CONVERTERS", "1000000", "is '1000000'.* from 0 to 4096"),
        ("GEOMILL_MAX_CONNECTIONS", "5 GB", "is '5 GB'.* from 1 to 9223372036854775807"),
        ("GEOMILL_PROCESSES", "99", "is '99'.*up to 32"),
        ("GEOMILL_PUBLIC_URL", "geomill.example", "https://"),
        ("GEOMILL_TRACES_URL", "127.0.0.1:4318", "http://"),
        ("GEOMILL_CORS_ORIGINS", "https://a.example, maps.example.org", "https://maps"),
        ("GEOMILL_CORS_ORIGINS", "https://maps.example.org/", "without a path"),
    ],
)
def test_a_value_that_nothing_could_work_with_is_told_with_what_is_permitted(
    name: str, value: str, expected: str
) -> None:
    """It would end the service with a traceback, or be served to clients and collectors that cannot use it."""
    with pytest.raises(SettingsError, match=f"{name} .*{expected}"):
        read_settings({name: value})


@pytest.mark.parametrize("value", ["", "*", "https://a.example,http://localhost:3000 , app://page", "null"])
def test_origins_are_taken_as_browsers_send_them(value: str) -> None:
    """With their scheme and port, without a path."""
    assert read_settings({"GEOMILL_CORS_ORIGINS": value}).cors_origins == value


def test_every_number_has_a_least_and_a_most_value() -> None:
    """So that one with a digit too many is refused at the start, and not found when the host is short of something."""
    for field in msgspec.structs.fields(Settings):
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            for value in ("-1", "9" * 20):
                with pytest.raises(SettingsError, match=f"{field.encode_name} is '{value}'. Set it to a .*number"):
                    read_settings({field.encode_name: value})


@pytest.mark.parametrize(
    "field",
    [field for field in msgspec.structs.fields(Settings) if field.name != "data_dir"],
    ids=lambda field: field.name,
)
def test_a_value_that_is_no_text_is_told_and_not_shown(field: msgspec.structs.FieldInfo) -> None:
    """Bytes that are not UTF-8, as in a variable set in another encoding, ended the command with a traceback."""
    with pytest.raises(SettingsError, match=f"{field.encode_name} is not text in UTF-8") as told:
        read_settings({field.encode_name: os.fsdecode(b"hidden \xff")})
    assert "hidden" not in str(told.value)


def test_an_unknown_variable_is_an_error() -> None:
    """Otherwise a typing error could go unnoticed."""
    with pytest.raises(SettingsError, match="GEOMILL_PROT"):
        read_settings({"GEOMILL_PROT": "1"})


def test_what_is_empty_is_not_set() -> None:
    """Compose writes a variable that it passes on so."""
    for field in msgspec.structs.fields(Settings):
        if field.default in {None, ""}:
            read_settings({field.encode_name: ""})


def test_a_secret_may_be_in_a_file(tmp_path: Path) -> None:
    """GEOMILL_X_FILE names the file that holds GEOMILL_X."""
    secret = tmp_path / "url"
    secret.write_text("postgresql:///x\n", encoding="utf-8")
    assert read_settings({"GEOMILL_DATABASE_URL_FILE": str(secret)}).database_url == "postgresql:///x"
    with pytest.raises(SettingsError, match="GEOMILL_DATABASE_URL_FILE"):
        read_settings({"GEOMILL_DATABASE_URL_FILE": str(tmp_path / "none")})


def test_a_secret_is_given_once(tmp_path: Path) -> None:
    """With two values, it would be unclear which one counts."""
    secret = tmp_path / "secret"
    secret.write_text("from the file")
    for both in (
        {"GEOMILL_S3_SECRET_KEY": "given", "GEOMILL_S3_SECRET_KEY_FILE": str(secret)},
        {"GEOMILL_S3_SECRET_KEY_FILE": str(secret), "GEOMILL_S3_SECRET_KEY": "given"},
    ):
        with pytest.raises(SettingsError, match="GEOMILL_S3_SECRET_KEY and GEOMILL_S3_SECRET_KEY_FILE are both set"):
            read_settings(both)


def test_a_secret_that_is_not_text_is_told(tmp_path: Path) -> None:
    """With its variable's name."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="GEOMILL_S3_SECRET_KEY_FILE"):
        read_settings({"GEOMILL_S3_SECRET_KEY_FILE": str(secret)})


def test_a_data_directory_may_not_be_too_deep() -> None:
    """SQLite, and with it the driver of GeoPackage, opens nothing there, and files would be called damaged."""
    deepest = f"/{'d' * (LONGEST_DATA_PATH - 1)}"
    assert str(read_settings({"GEOMILL_DATA_DIR": deepest}).data_path) == deepest
    with pytest.raises(SettingsError, match="GEOMILL_DATA_DIR is a path of 401 bytes"):
        _ = read_settings({"GEOMILL_DATA_DIR": f"{deepest}d"}).data_path
