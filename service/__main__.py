"""`python -m service` is `geomill`."""

import sys

from service.cli import main

sys.exit(main())
