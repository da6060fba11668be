"""The handlers, one module per resource. A handler reads parameters, calls a use case and renders its result."""
