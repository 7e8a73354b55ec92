"""Reads the mail in the file given as argument like a mail client, and prints what it displays."""

import email
import email.policy
import hashlib
import json
import sys
from pathlib import Path

raw = Path(sys.argv[1]).read_bytes()
mail = email.message_from_bytes(raw, policy=email.policy.default)
plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
files = []
for part in mail.iter_attachments():
    content = part.get_payload(decode=True)
    files.append(
        {
            "name": part.get_filename(),
            "type": part.get_content_type(),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    )
inline = []
for part in mail.walk():
    if part["content-id"]:
        content = part.get_payload(decode=True)
        inline.append(
            {
                "id": part["content-id"],
                "type": part.get_content_type(),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        )
defects = [str(d) for part in mail.walk() for d in part.defects]
defects += [f"{name}: {d}" for name, value in mail.items() for d in value.defects]


def lines(part):
    """The text of a part with local line endings, as mail clients display it."""
    return part.get_content().replace("\r\n", "\n") if part else None


longest = max(len(line) for line in raw.split(b"\n"))
print(
    json.dumps(
        {
            "subject": mail["subject"],
            "from": mail["from"],
            "to": [str(address) for address in mail["to"].addresses],
            "names": [name.lower() for name in mail.keys()],
            "id": mail["message-id"],
            "date": mail["date"].datetime.isoformat(),
            "unsubscribe": mail["list-unsubscribe"],
            "unsubscribe-post": mail["list-unsubscribe-post"],
            "inline": inline,
            "note": mail["x-note"],
            "text": lines(plain),
            "html": lines(html),
            "files": files,
            "defects": defects,
            "ascii": raw.isascii(),
            "longest": longest,
        }
    )
)
