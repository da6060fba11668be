"""Hostile files: a table of named cases for each kind of attack, and bait that shows when one succeeds.

Nothing binary is kept; every file is built when it is sent, the same each time. Files that name something to steal,
to call or to overwrite name the bait: a file with a secret, a listener that tells it, a directory to write into.
"""
