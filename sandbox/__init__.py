"""Run a command on untrusted input: isolated, limited, many at a time.

Owns: how a program is started, what it can reach, how far it may go, how it is ended and how that is told.
Does not own: what is run, what its output means, what a caller is told beyond one sentence per ending.

Always holds:

- The asyncio process starts no converter. A small helper (`keeper`, and below it `spawner`) does, and everything
  below the helper dies with it, as the helper dies with its service.
- A program starts only after every layer in use has been entered; a layer that fails ends the run, never weakens it.
- A run has exactly one verdict, and after it no process of the run is left.
- What a program wrote is untrusted and bounded.
"""
