"""The description of the interface: OpenAPI for programs, a page for people."""
