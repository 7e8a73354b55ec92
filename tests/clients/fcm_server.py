"""A strict stand-in for Firebase Cloud Messaging and Google's tokens: `fcm_server.py FOLDER MODE`.

MODE is `plain`, or `short` for access tokens that are valid for 2 s. It creates a service account and
a certificate, prints one line of JSON when it is ready and appends one line to FOLDER/requests for
each request for a token and each message. A request that deviates from Google's documentation is
answered 400 without details, and its line states the deviation in `refused`. The end of a device
token selects the answer:

    dead   404 UNREGISTERED            0400   400 INVALID_ARGUMENT, only in the message, as today
    0700   403 SENDER_ID_MISMATCH
    0429   429 QUOTA_EXCEEDED with Retry-After: 1, once
    0503   503 UNAVAILABLE with Retry-After: 1, once
    0401   401 and the access token is no longer valid, once
    hang   no answer, once
"""

import json
import re
import secrets
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

import certificate
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from push_checks import Deviation, Log, Tells, check, members, verify

folder, mode = Path(sys.argv[1]), sys.argv[2]
PROJECT, EMAIL = "wirephoto-test", "push@wirephoto-test.iam.gserviceaccount.example"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
log = Log(folder / "requests")
LIFE_S = 2 if mode == "short" else 3600
tells = Tells(
    {
        "0429": (429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
        "0503": (503, "UNAVAILABLE", "UNAVAILABLE"),
        "0401": (401, "UNAUTHENTICATED", None),
    },
    {
        "dead": (404, "NOT_FOUND", "UNREGISTERED"),
        "0400": (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        "0700": (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
    },
)
issued, lock = {}, threading.Lock()
hung = set()


def check_assertion(headers, body, audience):
    """A request for an access token."""
    kind = headers["content-type"]
    check(kind == "application/x-www-form-urlencoded", f"the content type is {kind}")
    form = dict(parse_qsl(body.decode(), strict_parsing=True))
    members(form, "the form", {"grant_type", "assertion"})
    check(form["grant_type"] == GRANT, f"the grant is {form['grant_type']}")
    header, claims = verify(form["assertion"], "RS256", key.public_key())
    members(header, "the JWT's header", {"alg"}, {"typ", "kid"})
    check(header.get("kid", "test-key") == "test-key", f"kid is {header.get('kid')}")
    members(claims, "the claims", {"iss", "scope", "aud", "iat", "exp"})
    check(claims["iss"] == EMAIL, f"iss is {claims['iss']}")
    check(claims["scope"] == SCOPE, f"the scope is {claims['scope']}")
    check(claims["aud"] == audience, f"aud is {claims['aud']}")
    check(abs(claims["iat"] - time.time()) < 60, "iat is not now")
    check(0 < claims["exp"] - claims["iat"] <= 3600, "it is valid for more than an hour")


def check_message(body):
    """A message as JSON."""
    whole = json.loads(body.decode())
    members(whole, "the body", {"message"})
    message = whole["message"]
    members(message, "message", {"token", "notification", "data", "android"})
    members(message["notification"], "notification", {"title", "body"}, {"image"})
    data = message["data"]
    members(data, "data", {"id", "url", "uri", "mediaType", "notification"}, {"image"})
    texts = [*data.values(), *message["notification"].values(), message["token"]]
    check(all(isinstance(text, str) for text in texts), "some value is no text")
    check(data.get("image") == message["notification"].get("image"), "two pictures")
    reserved = [name for name in data if re.match(r"from$|message_type$|google|gcm", name)]
    check(not reserved, f"{reserved} are reserved")
    android = message["android"]
    members(android, "android", {"priority", "ttl"}, {"collapse_key"})
    check(android["priority"] == "high", "the priority is not high")
    check(android["ttl"] == "86400s", f"ttl is {android['ttl']}")
    rest = {name: value for name, value in message.items() if name != "token"}
    size = len(json.dumps(rest, ensure_ascii=False, separators=(",", ":")).encode())
    check(size <= 4096, f"the message has {size} bytes")
    return message, size


class Handler(BaseHTTPRequestHandler):
    """Both services, which share one host here."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Suppresses the log of the base class."""

    def do_POST(self):
        """Answers one request."""
        body = self.rfile.read(int(self.headers["content-length"]))
        facts, more = {"path": self.path}, {}
        try:
            if self.path == "/token":
                status, said = self.token(facts, body)
            else:
                status, said = self.message(facts, body)
        except (Deviation, ValueError, KeyError, TypeError) as error:
            facts["refused"] = f"{type(error).__name__}: {error}"
            status, said = 400, {"error": {"code": 400, "status": "DEVIATION", "message": "no"}}
        if status in (429, 503):
            more["retry-after"] = "1"
        facts["status"] = status
        log.add(facts)
        if facts.get("token", "").endswith("hang") and facts["token"] not in hung:
            hung.add(facts["token"])
            threading.Event().wait()
        said = json.dumps(said).encode()
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json; charset=UTF-8")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def token(self, facts, body):
        """A new access token."""
        facts["kind"] = "token"
        check_assertion(self.headers, body, f"https://127.0.0.1:{server.server_address[1]}/token")
        text = "ya29." + secrets.token_urlsafe(60)
        with lock:
            issued[text] = time.time() + LIFE_S
        return 200, {"access_token": text, "expires_in": LIFE_S, "token_type": "Bearer"}

    def message(self, facts, body):
        """One message."""
        facts["kind"] = "message"
        check(self.path == f"/v1/projects/{PROJECT}/messages:send", f"the path is {self.path}")
        kind = self.headers["content-type"]
        check(kind.startswith("application/json"), f"the content type is {kind}")
        scheme, _, access = self.headers["authorization"].partition(" ")
        check(scheme == "Bearer", "authorization is not `Bearer …`")
        check(access in issued, "the access token is not ours")
        message, facts["bytes"] = check_message(body)
        facts |= {"access": access, "message": message, "token": message["token"]}
        if issued[access] < time.time():
            found = (401, "UNAUTHENTICATED", None)
        else:
            found = tells.find(message["token"])
        if found is None:
            return 200, {"name": f"projects/{PROJECT}/messages/{secrets.randbits(60)}"}
        status, name, code = found
        if status == 401:
            with lock:
                issued[access] = 0
        details = [{"@type": FCM_ERROR, "errorCode": code}] if code else []
        text = f"no such thing as {message['token']}"
        if code == "INVALID_ARGUMENT":
            text = "The registration token is not a valid FCM registration token"
        error = {"code": status, "message": text, "status": name, "details": details}
        return status, {"error": error}


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
ca, pem = certificate.make(folder)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(pem)
context.set_alpn_protocols(["http/1.1"])
server.socket = context.wrap_socket(server.socket, server_side=True)
private = key.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
port = server.server_address[1]
account = {
    "type": "service_account",
    "project_id": PROJECT,
    "private_key_id": "test-key",
    "private_key": private.decode(),
    "client_email": EMAIL,
    "token_uri": f"https://127.0.0.1:{port}/token",
}
path = folder / "account.json"
path.write_text(json.dumps(account))
facts = {"port": port, "ca": ca, "account": str(path), "requests": str(log.path)}
print(json.dumps(facts), flush=True)
server.serve_forever()
