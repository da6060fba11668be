"""Accounts, the organisations they belong to, and the keys that prove them.

Owns who somebody is; what they may still convert is metering's. A key is shown once and stored only as its hash.
"""
