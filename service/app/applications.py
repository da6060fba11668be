"""The ASGI applications over the services."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from starlette.routing import Route

from service.app.services import open_services
from service.http.application import FOR_CLIENTS, FOR_OPERATORS, ON_ONE_PORT, PAGE, Application, DeploymentConfig
from service.http.middleware.proxy_headers import parse_networks
from service.settings import Settings
from service.usecases.services import Services


def build_app(settings: Settings) -> Application:
    """Return the ASGI application, which opens its services at its start and closes them at its end.

    Raises:
        SettingsError: a setting has no meaning.
    """
    return Application(partial(open_services, settings), _deployment(settings), _on_main_port(settings))


def application_for(services: Services, settings: Settings) -> Application:
    """Return the application of the service's port, over services that someone else opens and closes."""
    return Application(lambda: nullcontext(services), _deployment(settings), _on_main_port(settings))


def operations_for(services: Services, settings: Settings) -> Application:
    """Return the application of the private port, over the same services."""
    return Application(lambda: nullcontext(services), _deployment(settings), FOR_OPERATORS)


def _on_main_port(settings: Settings) -> Sequence[Route]:
    routes = ON_ONE_PORT if settings.private_port is None else FOR_CLIENTS
    return routes if settings.page == "on" else [route for route in routes if route.name not in PAGE]


def _deployment(settings: Settings) -> DeploymentConfig:
    return DeploymentConfig(
        public_url=settings.public_url,
        root_path=settings.root_path,
        trusted_proxies=parse_networks(settings.trusted_proxies),
        cors_origins=tuple(settings.cors_origins.replace(",", " ").split()),
        max_header_bytes=settings.max_header_bytes,
    )
