"""HTTP: text and bytes to records and back. The only place with Starlette; it decides nothing."""
