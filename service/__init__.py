"""Geomill: a metered HTTP service that converts geospatial files.

`build_app` is the service as an ASGI application, to be served or mounted in another one.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.http.application import Application
    from service.settings import Settings

if sys.version_info < (3, 11, 5):  # before any module of the package compiles an expression, in converters as well
    from service.possessive import mend_possessive_repeats

    mend_possessive_repeats()


def build_app(settings: "Settings | None" = None) -> "Application":
    """Return the service as an ASGI application; without `settings` the environment has them (docs/settings.md).

    It opens what it needs in its lifespan, which the mounting application enters: `async with app.lifespan()`.

    Raises:
        SettingsError: a setting has no meaning.
    """
    # What serving needs is loaded here: importing a part of the package, as a converter does, must cost nothing.
    from service.app.applications import build_app as build  # noqa: PLC0415 -- see above
    from service.settings import read_settings  # noqa: PLC0415 -- see above

    return build(settings or read_settings(os.environ))  # noqa: TID251 -- this is an entry point, as a command is
