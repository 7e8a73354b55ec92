"""A strict stand-in for the Apple Push Notification service: `apns_server.py FOLDER MODE`.

MODE is `h2`, or `http1` for a server that supports only HTTP/1.1. It creates a signing key and a
certificate, prints one line of JSON when it is ready and appends one line to FOLDER/requests for
each message. A request that deviates from Apple's documentation is answered 400 `Deviation`, and its
line states the deviation in `refused`. The end of a device token selects the answer:

    dead   410 Unregistered            0400   400 BadDeviceToken
    0700   400 DeviceTokenNotForTopic
    0429   429 with Retry-After: 1, once       0503   503 with Retry-After: 1, once
    0403   403 ExpiredProviderToken, once
"""

import asyncio
import json
import re
import ssl
import sys
import time
import uuid
from pathlib import Path

import certificate
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    PingReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError
from push_checks import Deviation, Log, Tells, check, members, verify

folder, mode = Path(sys.argv[1]), sys.argv[2]
KEY_ID, TEAM_ID, TOPIC = "ABC123DEFG", "DEF123GHIJ", "example.wirephoto.app"
key = ec.generate_private_key(ec.SECP256R1())
log = Log(folder / "requests")
tells = Tells(
    {
        "0429": (429, "TooManyRequests"),
        "0503": (503, "ServiceUnavailable"),
        "0403": (403, "ExpiredProviderToken"),
    },
    {
        "dead": (410, "Unregistered"),
        "0400": (400, "BadDeviceToken"),
        "0700": (400, "DeviceTokenNotForTopic"),
    },
)
HEADERS = {
    "authorization",
    "apns-topic",
    "apns-push-type",
    "apns-priority",
    "apns-expiration",
    "apns-id",
}
OTHERS = {"apns-collapse-id", "content-type", "content-length", "user-agent", "accept"}
DATA = {"id", "url", "uri", "mediaType", "notification"}
# The provider token in use: its text, when it was first received, whether it was refused.
bearer = {"text": None, "time": 0.0, "refused": False}
delivered = set()


def check_bearer(authorization):
    """Checks the provider token; returns a status other than 400 where Apple does."""
    scheme, _, text = authorization.partition(" ")
    check(scheme == "bearer", "authorization is not `bearer …`")
    header, claims = verify(text, "ES256", key.public_key())
    members(header, "the JWT's header", {"alg", "kid"}, {"typ"})
    members(claims, "the claims", {"iss", "iat"})
    check(header["kid"] == KEY_ID, f"kid is {header['kid']}")
    check(claims["iss"] == TEAM_ID, f"iss is {claims['iss']}")
    check(isinstance(claims["iat"], int), "iat is no whole number")
    age = time.time() - claims["iat"]
    check(age > -5, "iat is in the future")
    if age > 3600:
        return 403, "ExpiredProviderToken"
    if text == bearer["text"]:
        return (403, "ExpiredProviderToken") if bearer["refused"] else None
    soon = time.time() - bearer["time"] < 20 * 60
    if bearer["text"] is not None and soon and not bearer["refused"]:
        return 429, "TooManyProviderTokenUpdates"
    bearer.update(text=text, time=time.time(), refused=False)
    return None


def check_headers(pseudo, headers):
    """Checks everything before the body; returns the device token."""
    check(pseudo.get(":method") == "POST", f"the method is {pseudo.get(':method')}")
    check(pseudo.get(":scheme") == "https", "the scheme is not https")
    check(pseudo.get(":authority"), "there is no authority")
    found = re.fullmatch(r"/3/device/([0-9a-fA-F]{8,})", pseudo.get(":path", ""))
    check(found, f"the path is {pseudo.get(':path')}")
    members(headers, "the head", HEADERS, OTHERS)
    check(headers["apns-topic"] == TOPIC, f"the topic is {headers['apns-topic']}")
    check(headers["apns-push-type"] == "alert", "the push type is not alert")
    check(headers["apns-priority"] == "10", "the priority is not 10")
    identity = headers["apns-id"]
    check(str(uuid.UUID(identity)) == identity, "apns-id is no canonical UUID")
    ahead = int(headers["apns-expiration"]) - time.time()
    check(23 * 3600 < ahead < 25 * 3600, f"the expiration is {ahead:.0f} s ahead")
    collapse = headers.get("apns-collapse-id", "x")
    check(0 < len(collapse.encode()) <= 64, "the collapse id is empty or too long")
    return found[1]


def check_payload(headers, body):
    """The body as JSON."""
    check(len(body) <= 4096, f"the payload has {len(body)} bytes")
    check(int(headers.get("content-length", len(body))) == len(body), "content-length is wrong")
    payload = json.loads(body.decode())
    members(payload, "the payload", {"aps"} | DATA, {"image"})
    check(all(isinstance(payload[name], str) for name in DATA), "some data are no text")
    aps = payload["aps"]
    members(aps, "aps", {"alert", "sound", "thread-id"}, {"mutable-content"})
    members(aps["alert"], "alert", {"title", "body"})
    check(all(isinstance(text, str) for text in aps["alert"].values()), "the alert is no text")
    check(aps["sound"] == "default", "the sound is not the default")
    check(aps["thread-id"] == payload["notification"], "the thread is not the notification")
    check(("mutable-content" in aps) == ("image" in payload), "mutable-content without a picture")
    check(aps.get("mutable-content", 1) == 1, "mutable-content is not 1")
    check(payload["id"] == headers["apns-id"], "the id is not that of the head")
    return payload


def answer(connection, pairs, body):
    """Logs a message; returns its status and reason."""
    facts = {"connection": connection, "status": 200}
    try:
        names = [name for name, _ in pairs]
        check(len(set(names)) == len(names), "a header is there twice")
        check(all(name == name.lower() for name in names), "a header has capitals")
        pseudo = {name: value for name, value in pairs if name.startswith(":")}
        headers = {name: value for name, value in pairs if not name.startswith(":")}
        facts |= {"id": headers.get("apns-id"), "collapse": headers.get("apns-collapse-id")}
        facts["token"] = token = check_headers(pseudo, headers)
        refused = check_bearer(headers["authorization"])
        facts["bearer"] = headers["authorization"]
        facts["payload"], facts["bytes"] = check_payload(headers, body), len(body)
        status, reason = refused or tells.find(token) or (200, None)
        if reason == "ExpiredProviderToken":
            bearer["refused"] = True
        facts["repeated"] = status == 200 and headers["apns-id"] in delivered
        if status == 200:
            delivered.add(headers["apns-id"])
    except (Deviation, ValueError, KeyError, TypeError) as error:
        status, reason = 400, "Deviation"
        facts["refused"] = f"{type(error).__name__}: {error}"
    facts |= {"status": status, "reason": reason}
    log.add(facts)
    return status, reason, facts.get("id")


class Connection(asyncio.Protocol):
    """One connection."""

    count = 0

    def connection_made(self, transport):
        """Insists on HTTP/2 (ALPN)."""
        Connection.count += 1
        self.number, self.transport, self.streams = Connection.count, transport, {}
        secure = transport.get_extra_info("ssl_object")
        if secure.selected_alpn_protocol() != "h2":
            log.add({"refused": "the connection did not agree on h2"})
            transport.close()
            return
        config = H2Configuration(client_side=False, header_encoding="utf-8")
        self.h2 = H2Connection(config)
        self.h2.initiate_connection()
        transport.write(self.h2.data_to_send())

    def data_received(self, data):
        """Collects requests and answers them."""
        try:
            events = self.h2.receive_data(data)
        except ProtocolError as error:
            log.add({"refused": f"HTTP/2: {error}"})
            events = []
            self.transport.write(self.h2.data_to_send())
            self.transport.close()
        for event in events:
            if isinstance(event, RequestReceived):
                self.streams[event.stream_id] = (event.headers, bytearray())
            elif isinstance(event, DataReceived):
                self.streams[event.stream_id][1].extend(event.data)
                size = event.flow_controlled_length
                self.h2.acknowledge_received_data(size, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.reply(event.stream_id)
            elif isinstance(event, StreamReset):
                self.streams.pop(event.stream_id, None)
            elif isinstance(event, ConnectionTerminated):
                self.transport.close()
            elif isinstance(event, PingReceived):
                pass
        self.transport.write(self.h2.data_to_send())

    def reply(self, stream):
        """Answers one request."""
        pairs, body = self.streams.pop(stream)
        status, reason, identity = answer(self.number, pairs, bytes(body))
        body = b""
        if reason is not None:
            said = {"reason": reason}
            if status == 410:
                said["timestamp"] = int(time.time() * 1000)
            body = json.dumps(said).encode()
        headers = [(":status", str(status))]
        if identity:
            headers.append(("apns-id", identity))
        if status in (429, 503):
            headers.append(("retry-after", "1"))
        self.h2.send_headers(stream, headers, end_stream=not body)
        if body:
            self.h2.send_data(stream, body, end_stream=True)


class Old(asyncio.Protocol):
    """A connection that supports only HTTP/1.1."""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()


async def main():
    """Serves until it is killed."""
    ca, pem = certificate.make(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    context.set_alpn_protocols(["h2"] if mode == "h2" else ["http/1.1"])
    kind = Connection if mode == "h2" else Old
    server = await asyncio.get_running_loop().create_server(kind, "127.0.0.1", 0, ssl=context)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "AuthKey.p8"
    path.write_bytes(private)
    facts = {"port": server.sockets[0].getsockname()[1], "ca": ca, "key": str(path)}
    facts |= {"keyId": KEY_ID, "teamId": TEAM_ID, "topic": TOPIC, "requests": str(log.path)}
    print(json.dumps(facts), flush=True)
    await server.serve_forever()


asyncio.run(main())
