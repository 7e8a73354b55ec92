"""Writes certificates for a server with TLS, and some that it must refuse, into folders below the first argument.

Each folder holds `ca.pem` and `server.pem`, which has the key and the certificate."""

import sys
from pathlib import Path

from certificate import make

for name, days in [("one", (-1, 1)), ("two", (-2, 2)), ("expired", (-9, -1)), ("later", (1, 9))]:
    folder = Path(sys.argv[1]) / name
    folder.mkdir()
    make(folder, days)
