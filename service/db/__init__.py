"""PostgreSQL: reaching it, its schema, its statements, and a private server where none is given.

Owns the connection pool and the translation of its failures, the loading of named statements, the migrations and the
embedded server. Does not own any statement's meaning: that is the business of the capability that runs it.

What always holds: SQL stands in `sql/`, never in Python; no exception of the driver's connection leaves this package
(a database out of reach is `DatabaseUnavailable`); nothing is opened at import.
"""
