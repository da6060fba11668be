"""Metering: who may convert how much, and the ledger of it.

Owns the plans, the explanation of limits, the price of a file for wallet accounts, and the three changes of a
reservation: admit, settle, release. Owns neither accounts, files nor the progress of jobs.

Invariants: settled + reserved never exceeds an allowance; a job is settled at most once; every reservation is either
settled in the ledger or released. PostgreSQL enforces all three (sql/migrations); this package explains them to
clients.
"""
