"""The description of the interface in OpenAPI."""
