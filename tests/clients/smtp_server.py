"""A mail server that stores its mails: `smtp_server.py FOLDER MODE`; MODE is plain, starttls or tls.
Mails to `busy@…` are deferred, those to `nobody@…` refused. Prints one line of JSON when it is
ready."""

import asyncio
import json
import ssl
import sys
from pathlib import Path

import certificate
from aiosmtpd.smtp import SMTP, AuthResult

folder, mode = Path(sys.argv[1]), sys.argv[2]
files = folder / "files"
files.mkdir(exist_ok=True)
ca, server_pem = certificate.make(folder)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(server_pem)


def authenticate(server, session, envelope, mechanism, data):
    """One account."""
    known = (data.login, data.password) == (b"desk", b"s3cret-password")
    return AuthResult(success=known, handled=False, message=None)


class Keeper:
    """Writes each mail into the folder."""

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("busy@"):
            return "451 4.7.1 try later s3cret-password"
        if address.startswith("nobody@"):
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        number = len(list(files.glob("*.eml")))
        (files / f"{number}.eml").write_bytes(envelope.content)
        facts = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "encrypted": session.ssl is not None or mode == "tls",
            "login": bool(session.authenticated),
        }
        (files / f"{number}.json").write_text(json.dumps(facts))
        return "250 OK"


def protocol():
    """One connection."""
    return SMTP(
        Keeper(),
        hostname="localhost",
        authenticator=authenticate,
        auth_required=True,
        auth_require_tls=mode == "starttls",
        tls_context=context if mode == "starttls" else None,
        require_starttls=mode == "starttls",
        data_size_limit=64 * 1024 * 1024,
    )


async def main():
    """Serves until it is killed."""
    secure = context if mode == "tls" else None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, "127.0.0.1", 0, ssl=secure)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"port": port, "ca": ca}), flush=True)
    await server.serve_forever()


asyncio.run(main())
