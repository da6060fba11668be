"""Who may convert how much, and the books of it.

Owns the plans, the order in which limits are checked, the price of a file for wallet accounts, and the three changes
of a reservation: admit, settle, release. Owns no account, no file and no job's progress.

What always holds: settled + reserved never exceeds an allowance; a job is settled at most once; what was reserved is
either in the ledger or given back. PostgreSQL guards all three (sql/migrations), this package words them.
"""
