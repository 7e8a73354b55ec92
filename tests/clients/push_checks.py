"""Shared by the stand-ins for push services: parsing JWTs and verifying them with their public key,
and a file of the received requests."""

import base64
import json
import re
import threading

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature


class Deviation(Exception):
    """The client violates the protocol; the text states how."""


def check(truth, reason):
    """Refuses the request unless the condition holds."""
    if not truth:
        raise Deviation(reason)


def _decode(part):
    check(re.fullmatch(r"[A-Za-z0-9_-]+", part), "a part of the JWT is not base64url")
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def verify(text, algorithm, key):
    """Header and claims of a JWT with a valid signature."""
    parts = text.split(".")
    check(len(parts) == 3, "the JWT does not have three parts")
    header, claims = (json.loads(_decode(part)) for part in parts[:2])
    check(header.get("alg") == algorithm, f"alg is {header.get('alg')}")
    check(header.get("typ", "JWT") == "JWT", f"typ is {header.get('typ')}")
    signature, signed = _decode(parts[2]), ".".join(parts[:2]).encode()
    try:
        if algorithm == "ES256":
            check(len(signature) == 64, "the signature is not r and s of 32 bytes")
            numbers = (int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
            key.verify(encode_dss_signature(*numbers), signed, ec.ECDSA(hashes.SHA256()))
        else:
            key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        raise Deviation("the signature does not hold") from None
    return header, claims


def members(thing, name, required, optional=()):
    """The object has all required members and no unknown one."""
    check(isinstance(thing, dict), f"{name} is no object")
    missing = set(required) - set(thing)
    check(not missing, f"{name} lacks {sorted(missing)}")
    unknown = set(thing) - set(required) - set(optional)
    check(not unknown, f"{name} has {sorted(unknown)}")


class Log:
    """A file with a line of JSON for each request."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        path.touch()

    def add(self, facts):
        """Appends a request."""
        with self.lock, self.path.open("a") as file:
            file.write(json.dumps(facts) + "\n")


class Tells:
    """Selects the answer by the last digits of a device token: those of `once` apply to the first
    message to that device, those of `always` to all."""

    def __init__(self, once, always):
        self.once, self.always, self.seen = once, always, set()

    def find(self, token):
        """The name of the answer, or None for a normal one."""
        for end, answer in self.always.items():
            if token.endswith(end):
                return answer
        for end, answer in self.once.items():
            if token.endswith(end) and token not in self.seen:
                self.seen.add(token)
                return answer
        return None
