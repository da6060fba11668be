"""The HTTP interface: middleware, routes, authentication, and the conversion between HTTP messages and records."""
