"""Run a command on untrusted input: isolated, limited, many at a time.

Owns: how a program starts, what it can reach, which limits apply, how it ends and how that is reported. Does not own:
what is run, what its output means, and what a client reads beyond one sentence per ending.

Invariants:

- The asyncio process starts no converter. A small helper does (`keeper`, and below it `spawner`). Every process
  below the helper dies with it, and the helper dies with its service.
- A program starts only after it has entered every active layer. A layer that fails ends the run.
- A run has exactly one verdict, and no process of the run is left after it.
- What a program wrote is untrusted and bounded.
"""
