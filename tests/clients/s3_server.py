"""An S3 server that checks signatures, with the bucket `bilder`. Prints one line of JSON when it is
ready; each line of its input is a key, answered with one line about the object, or an order as JSON:
list, damage, delete. Its second argument is the address to listen at, if not loopback."""

import hashlib
import json
import logging
import os
import sys

os.environ.update(AWS_DEFAULT_REGION="eu-north-1", AWS_EC2_METADATA_DISABLED="true")
# What comes before is not checked: the bucket, the user, his policy, his key; the role, its policy,
# and the key that is valid for a while.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "7"
logging.getLogger("werkzeug").setLevel(logging.ERROR)

import boto3
from moto.server import ThreadedMotoServer

address = sys.argv[2] or "127.0.0.1"
server = ThreadedMotoServer(ip_address=address, port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()
endpoint = f"http://{address}:{port}"
first = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "endpoint_url": endpoint}
boto3.client("s3", **first).create_bucket(
    Bucket="bilder", CreateBucketConfiguration={"LocationConstraint": "eu-north-1"}
)
iam = boto3.client("iam", **first)
iam.create_user(UserName="desk")
allow = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
iam.put_user_policy(UserName="desk", PolicyName="all", PolicyDocument=policy)
key = iam.create_access_key(UserName="desk")["AccessKey"]
ready = {"port": port, "id": key["AccessKeyId"], "key": key["SecretAccessKey"]}
role = iam.create_role(RoleName="night", AssumeRolePolicyDocument="{}")["Role"]
iam.put_role_policy(RoleName="night", PolicyName="all", PolicyDocument=policy)
assumed = boto3.client("sts", **first).assume_role(RoleArn=role["Arn"], RoleSessionName="shift")
brief = assumed["Credentials"]
ready["brief"] = [brief["AccessKeyId"], brief["SecretAccessKey"], brief["SessionToken"]]
print(json.dumps(ready), flush=True)

client = boto3.client(
    "s3",
    aws_access_key_id=key["AccessKeyId"],
    aws_secret_access_key=key["SecretAccessKey"],
    endpoint_url=endpoint,
)


def obey(order):
    """Does what the store must notice, past it."""
    if order["do"] == "list":
        pages = client.get_paginator("list_objects_v2").paginate(
            Bucket="bilder", Prefix=order["prefix"]
        )
        return [found["Key"] for page in pages for found in page.get("Contents", [])]
    if order["do"] == "open":
        return len(client.list_multipart_uploads(Bucket="bilder").get("Uploads", []))
    if order["do"] == "delete":
        client.delete_object(Bucket="bilder", Key=order["key"])
        return None
    body = bytearray(client.get_object(Bucket="bilder", Key=order["key"])["Body"].read())
    body[order["at"]] ^= 0x10
    client.put_object(Bucket="bilder", Key=order["key"], Body=bytes(body))
    return None


for line in sys.stdin:
    if line.startswith("{"):
        print(json.dumps(obey(json.loads(line))), flush=True)
        continue
    found = client.get_object(Bucket="bilder", Key=line.strip())
    body = found["Body"].read()
    facts = {
        "size": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "type": found["ContentType"],
        "parts": int(found["ETag"].strip('"').partition("-")[2] or 1),
        "count": client.list_objects_v2(Bucket="bilder")["KeyCount"],
        "open": len(client.list_multipart_uploads(Bucket="bilder").get("Uploads", [])),
    }
    print(json.dumps(facts), flush=True)
