"""ASGI middleware, outermost first: request context, proxy headers, response headers, header limits, draining."""
