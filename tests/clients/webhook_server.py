"""A receiver of webhooks: `webhook_server.py FOLDER MODE`; MODE is plain or tls. The path selects the
answer: for instance `/status/503`, `/redirect`, `/silent`, `/endless`. It prints one line of JSON
when it is ready and one for each request, with the verdict of the Standard Webhooks library on the
signature."""

import hashlib
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import certificate
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

folder, mode = sys.argv[1], sys.argv[2]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"


class Handler(BaseHTTPRequestHandler):
    """Checks each posted request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Suppresses the log of the base class."""

    def do_POST(self):
        """Answers as selected by the path."""
        body = self.rfile.read(int(self.headers["content-length"]))
        file = self.headers["wirephoto-file"]
        sum_ = hashlib.sha256(body).hexdigest()
        try:
            signed = file if file is not None else body.decode()
            verified = Webhook(SECRET).verify(signed, dict(self.headers)) is not None
        except WebhookVerificationError:
            verified = False
        facts = {
            "path": self.path,
            "id": self.headers["webhook-id"],
            "type": self.headers["content-type"],
            "verified": verified,
            "sha256": sum_,
            "file": json.loads(file) if file else None,
            "body": None if file else json.loads(body),
        }
        print(json.dumps(facts), flush=True)
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("location", "/status/200")
            self.send_header("content-length", "0")
            self.end_headers()
        elif self.path == "/silent":
            self.rfile.read(1)
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                pass
        else:
            self.send_response(int(self.path.rsplit("/", 1)[1].partition("?")[0]))
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
ca = None
if mode == "tls":
    ca, pem = certificate.make(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(json.dumps({"port": server.server_address[1], "ca": ca, "secret": SECRET}), flush=True)
server.serve_forever()
