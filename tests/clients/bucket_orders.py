"""Commands of tests that change objects of the bucket `bilder` without the store, and queries."""

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor

BUCKET = "bilder"


def unfinished(client):
    """The number of unfinished multipart uploads."""
    return len(client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []))


def fill(client, order):
    """Writes `count` small objects whose keys are those of blobs: `prefix`/ab/cdef…"""

    def put(number):
        name = hashlib.sha256(str(number).encode()).hexdigest()
        key = f"{order['prefix']}/{name[:2]}/{name[2:]}"
        client.put_object(Bucket=BUCKET, Key=key, Body=b"filler")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(order["count"])))


def obey(client, order):
    """Makes a change that the store must detect."""
    if order["do"] == "list":
        pages = client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=order["prefix"]
        )
        return [found["Key"] for page in pages for found in page.get("Contents", [])]
    if order["do"] == "open":
        return unfinished(client)
    if order["do"] == "fill":
        return fill(client, order)
    if order["do"] == "delete":
        client.delete_object(Bucket=BUCKET, Key=order["key"])
        return None
    if order["do"] == "damage":
        body = bytearray(client.get_object(Bucket=BUCKET, Key=order["key"])["Body"].read())
        body[order["at"]] ^= 0x10
        client.put_object(Bucket=BUCKET, Key=order["key"], Body=bytes(body))
        return None
    raise ValueError(f"no order: {order}")


def facts(client, key):
    """The properties of one object."""
    found = client.get_object(Bucket=BUCKET, Key=key)
    body = found["Body"].read()
    return {
        "size": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "type": found.get("ContentType"),
        "parts": int(found["ETag"].strip('"').partition("-")[2] or 1),
        "count": client.list_objects_v2(Bucket=BUCKET)["KeyCount"],
        "open": unfinished(client),
    }


def serve(client, also=obey):
    """Answers each line of the input, a key or a command as JSON, with a line of JSON."""
    for line in sys.stdin:
        if line.startswith("{"):
            answer = also(client, json.loads(line))
        else:
            answer = facts(client, line.strip())
        print(json.dumps(answer), flush=True)
