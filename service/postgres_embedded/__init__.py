"""A private PostgreSQL in the data directory, for whoever does not bring one.

Theory of operation. Three kinds of process share `<data directory>/postgres/`:

    user     whoever is inside `embedded_postgres()`: the gateway, a command of the CLI, a test run
    keeper   one small process, in its own session, that starts the server, restarts it and ends it
    server   PostgreSQL, a child of the keeper; run as another user when Geomill is root, because it refuses root

Two locks (flock: the kernel drops them with the process that held them, however it ended) tie their lives together:

    users.lock    every user holds it shared; the keeper waits for it exclusively. When the keeper gets it, nobody is
                  left, and it stops the server. So whoever came first may leave first, and kill -9 of every user is
                  an orderly shutdown.
    keeper.lock   held exclusively by whoever prepares the directory, then by the keeper that it starts. A user who
                  can take it knows that there is no keeper and starts one; the others just wait for the server.

    killed with -9      what follows
    a user              nothing, or an orderly shutdown when it was the last
    the server          the keeper starts it again, which recovers
    the keeper          the kernel interrupts the server (fast shutdown); a user notices and starts another keeper
    all of them         the next start recovers

(The kernel's part in the third row is Linux's. Elsewhere a server whose keeper was killed goes on until it is stopped
by hand; users still find it by its socket.)

What always holds: the server listens on a socket in a directory with mode 0700, never on a port; at most one server
works on the data; data of a version that cannot be run here are never passed over for an empty database.
"""

from service.postgres_embedded.attach import embedded_postgres
from service.postgres_embedded.errors import EmbeddedPostgresError
from service.postgres_embedded.home import has_database
from service.postgres_embedded.start import installed_major

__all__ = ["EmbeddedPostgresError", "embedded_postgres", "has_database", "installed_major"]
