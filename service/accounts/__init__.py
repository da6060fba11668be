"""Accounts, their organizations, and the API keys that identify them.

Owns identities; metering decides what an account may convert. A key is shown once and stored only as a hash.
"""
