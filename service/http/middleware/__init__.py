"""ASGI middleware, outermost first: draining, request context, proxy headers."""
