"""A Garage cluster of three nodes on loopback with replication factor 3 and the bucket `bilder`. Prints one
line of JSON when it is ready, then executes the commands of `bucket_orders` and its own. `TEST_GARAGE`
is the path of the program. The second argument lists ports: three for clients, three between the nodes.
All nodes stop with this process."""

import ctypes
import json
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import time

import boto3
import botocore
import bucket_orders

REGION = "eu-north-1"
# Timeout in seconds for the start of a cluster, also on a busy machine.
PATIENCE = 120
SET_PDEATHSIG = 1

program = os.environ["TEST_GARAGE"]
folder = pathlib.Path(sys.argv[1])
numbers = [int(number) for number in sys.argv[2].split(",")]
ports, inner_ports = numbers[:3], numbers[3:]
secret = secrets.token_hex(32)
libc = ctypes.CDLL(None)


def config(number):
    return folder / f"node-{number}" / "garage.toml"


def die_with_parent():
    libc.prctl(SET_PDEATHSIG, signal.SIGKILL)


def start(number):
    """Starts a node, for the first time or after it was stopped."""
    with open(config(number).with_name("log"), "ab") as log:
        command = [program, "-c", config(number), "server"]
        environment = os.environ | {"RUST_LOG": "warn", "NO_COLOR": "1"}
        return subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, preexec_fn=die_with_parent
        )


def garage(*words, node=1):
    """Runs a Garage command on a node; returns its output."""
    command = [program, "-c", config(node), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def until(attempt):
    """Repeats an attempt until it succeeds; returns its result."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return attempt()
        except (RuntimeError, OSError, botocore.exceptions.BotoCoreError,
                botocore.exceptions.ClientError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def listens(port):
    socket.create_connection(("127.0.0.1", port)).close()


def client(number, key):
    return boto3.client(
        "s3",
        aws_access_key_id=key["accessKeyId"],
        aws_secret_access_key=key["secretAccessKey"],
        endpoint_url=f"http://127.0.0.1:{ports[number - 1]}",
        region_name=REGION,
        config=botocore.config.Config(retries={"max_attempts": 1}),
    )


def new_key(*rights):
    """Creates a key with the given rights to the bucket."""
    key = json.loads(garage("json-api", "CreateKey", json.dumps({"name": "desk"})))
    garage("bucket", "allow", *rights, bucket_orders.BUCKET, "--key", key["accessKeyId"])
    return key


def try_out(number, key):
    """Fails until a node returns an object that was written to another one."""
    name = f"ready-{number}"
    client(number, key).put_object(Bucket=bucket_orders.BUCKET, Key=name, Body=b"?")
    for other in (1, 2, 3):
        client(other, key).get_object(Bucket=bucket_orders.BUCKET, Key=name)["Body"].read()
    client(number, key).delete_object(Bucket=bucket_orders.BUCKET, Key=name)


def set_up():
    """Configures the nodes, starts them and makes them one cluster with a bucket."""
    for number in (1, 2, 3):
        home = config(number).parent
        home.mkdir()
        inner = f"127.0.0.1:{inner_ports[number - 1]}"
        config(number).write_text(
            f"""
replication_factor = 3
metadata_dir = "{home}/meta"
data_dir = "{home}/data"
db_engine = "lmdb"
rpc_secret = "{secret}"
rpc_bind_addr = "{inner}"
rpc_public_addr = "{inner}"

[s3_api]
s3_region = "{REGION}"
api_bind_addr = "127.0.0.1:{ports[number - 1]}"
root_domain = ".s3.example"
"""
        )
        nodes[number] = start(number)
    for number in (1, 2, 3):
        until(lambda: garage("status", node=number))
        names[number] = garage("node", "id", "-q", node=number).strip()
    connect(1)
    ids = [name.partition("@")[0] for name in names.values()]
    until(lambda: garage("layout", "assign", "-z", "loopback", "-c", "10GB", *ids))
    garage("layout", "apply", "--version", "1")
    until(lambda: garage("bucket", "create", bucket_orders.BUCKET))


def connect(number):
    """Connects a node with the running ones, in both directions: without this it takes up to a minute."""
    for other in (1, 2, 3):
        if other != number and nodes[other].poll() is None:
            until(lambda: garage("node", "connect", names[other], node=number))
            until(lambda: garage("node", "connect", names[number], node=other))


def obey(own, order):
    """Executes a command as an operator of the cluster would."""
    number = order.get("node")
    if order["do"] == "stop":
        nodes[number].kill()
        nodes[number].wait()
        return None
    if order["do"] == "start":
        nodes[number] = start(number)
        until(lambda: listens(ports[number - 1]))
        connect(number)
        return None
    if order["do"] == "key":
        key = new_key("--read", "--write")
        return {"id": key["accessKeyId"], "key": key["secretAccessKey"]}
    if order["do"] == "revoke":
        garage("key", "delete", "--yes", order["id"])
        return None
    if order["do"] == "deny":
        garage("bucket", "deny", order["right"], bucket_orders.BUCKET, "--key", order["id"])
        return None
    return bucket_orders.obey(own, order)


nodes, names = {}, {}
set_up()
# The key of the service has only the rights that it needs; the other one is for commands.
key, own = new_key("--read", "--write"), new_key("--read", "--write", "--owner")
for number in (1, 2, 3):
    until(lambda: try_out(number, own))
    until(lambda: try_out(number, key))
ready = {"port": ports[0], "ports": ports, "id": key["accessKeyId"], "key": key["secretAccessKey"]}
print(json.dumps(ready), flush=True)
bucket_orders.serve(client(1, own), obey)
