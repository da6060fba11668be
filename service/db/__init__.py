"""PostgreSQL: connections, schema and statements.

Owns the connection pool and the translation of its failures, the loading of named statements, and the migrations.
The capability that runs a statement owns its meaning.

Invariants: SQL is in `sql/`, never in Python; connection errors of the driver do not leave this package (an unreachable
database is `DatabaseUnavailable`); nothing is opened at import.
"""
