"""An SSH server with SFTP: `sftp_server.py FOLDER MODE`; MODE is password, key, questions or old
(without the extensions of OpenSSH). Prints one line of JSON when it is ready."""

import asyncio
import json
import sys
from pathlib import Path

import asyncssh
from asyncssh import sftp

folder, mode = Path(sys.argv[1]), sys.argv[2]
files = folder / "files"
files.mkdir(exist_ok=True)
host_keys = [asyncssh.generate_private_key(kind) for kind in ("ssh-ed25519", "ecdsa-sha2-nistp256")]
user_key = asyncssh.generate_private_key("ssh-ed25519")
if mode == "old":
    sftp.SFTPServerHandler._extensions = []


class Server(asyncssh.SSHServer):
    """One account."""

    def begin_auth(self, username):
        return True

    def password_auth_supported(self):
        return mode in ("password", "old")

    def validate_password(self, username, password):
        return (username, password) == ("desk", "s3cret-password")

    def kbdint_auth_supported(self):
        return mode == "questions"

    def get_kbdint_challenge(self, username, lang, submethods):
        return "", "", "", [("Your name? ", True), ("Your password? ", False)]

    def validate_kbdint_response(self, username, responses):
        return username == "desk" and responses == ["", "s3cret-password"]

    def public_key_auth_supported(self):
        return mode == "key"

    def validate_public_key(self, username, key):
        return username == "desk" and key == user_key.convert_to_public()


async def main():
    """Serves until it is killed."""
    listener = await asyncssh.create_server(
        Server,
        "127.0.0.1",
        0,
        server_host_keys=host_keys,
        sftp_factory=lambda chan: sftp.SFTPServer(chan, chroot=str(files).encode()),
    )
    keys = [key.convert_to_public() for key in host_keys]
    ready = {
        "port": listener.get_port(),
        "fingerprints": [key.get_fingerprint() for key in keys],
        "keys": [key.export_public_key().decode().strip() for key in keys],
        "userKey": user_key.export_private_key().decode(),
        "lockedKey": user_key.export_private_key(passphrase="open sesame").decode(),
    }
    print(json.dumps(ready), flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
