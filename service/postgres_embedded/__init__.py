"""A private PostgreSQL in the data directory, for installations without one.

Theory of operation. Three kinds of process share `<data directory>/postgres/`:

    user     a process inside `embedded_postgres()`: the gateway, a command of the CLI, a test run
    keeper   one small process, in its own session, that starts, restarts and stops the server
    server   PostgreSQL, a child of the keeper; runs as another user if Geomill is root, because it refuses root

Two locks (flock: the kernel releases them when the process that holds them ends for any reason) coordinate them:

    users.lock    every user holds it shared; the keeper waits for it exclusively. When the keeper acquires it, no user
                  is left, and the keeper stops the server. Users may therefore end in any order, and killing every user
                  with SIGKILL is an orderly shutdown.
    keeper.lock   held exclusively by the user that prepares the directory, then by the keeper that it starts. A user
                  that can acquire it knows that there is no keeper and starts one; the others wait for the server.

    killed by SIGKILL   consequence
    a user              none, or an orderly shutdown if it was the last one
    the server          the keeper restarts it, and it recovers
    the keeper          the kernel interrupts the server (fast shutdown); a user notices and starts another keeper
    all of them         the next start recovers

(In the third row, the kernel interrupts the server only on Linux. Elsewhere, a server whose keeper was killed continues
until it is stopped manually; users still find it by its socket.)

Invariants: the server listens on a socket in a directory with mode 0700, never on a port; at most one server
works on the data; if the data belong to a version that cannot run here, no empty database takes their place.
"""

from service.postgres_embedded.attach import embedded_postgres
from service.postgres_embedded.errors import EmbeddedPostgresError
from service.postgres_embedded.home import has_database
from service.postgres_embedded.start import installed_major

__all__ = ["EmbeddedPostgresError", "embedded_postgres", "has_database", "installed_major"]
