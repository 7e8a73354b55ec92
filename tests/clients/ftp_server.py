"""An FTP server: `ftp_server.py FOLDER MODE`; MODE is plain, tls or implicit, and `-keep` at its end
refuses to rename over a file. Prints one line of JSON when it is ready."""

import json
import sys
from pathlib import Path

import certificate
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler, TLS_FTPHandler
from pyftpdlib.servers import FTPServer

folder, mode = Path(sys.argv[1]), sys.argv[2]
files = folder / "files"
files.mkdir(exist_ok=True)
kind = mode.removesuffix("-keep")

authorizer = DummyAuthorizer()
authorizer.add_user("desk", "s3cret-password", str(files), perm="elradfmwMT")
authorizer.add_user("guest", "s3cret-password", str(files), perm="elr")

base = FTPHandler if kind == "plain" else TLS_FTPHandler


class Handler(base):
    """The handler of the library, without a delay for refused logins and optionally without overwriting."""

    authorizer = authorizer
    auth_failed_timeout = 0
    banner = "ready"

    def handle(self):
        if kind == "implicit":
            self.secure_connection(self.ssl_context)
        super().handle()

    def ftp_RNTO(self, path):
        if mode.endswith("-keep") and self.fs.isfile(path):
            self._rnfr = None
            self.respond("550 File exists.")
            return None
        return super().ftp_RNTO(path)


# The address of another machine: a client that uses it cannot connect.
Handler.masquerade_address = "192.0.2.1"
ca = None
if kind != "plain":
    ca, server = certificate.make(folder)
    Handler.certfile = server
    Handler.tls_control_required = True
    Handler.tls_data_required = True

server = FTPServer(("127.0.0.1", 0), Handler)
print(json.dumps({"port": server.address[1], "ca": ca}), flush=True)
server.serve_forever()
