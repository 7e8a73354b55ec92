"""An S3 server that checks signatures, with the bucket `bilder`. Prints one line of JSON when it is
ready, and then executes `bucket_orders`. Its second argument is the listen address, if not loopback."""

import json
import logging
import os
import sys

os.environ.update(AWS_DEFAULT_REGION="eu-north-1", AWS_EC2_METADATA_DISABLED="true")
# The setup requests are not checked: the bucket, the user, its policy, its key; the role, its policy,
# and the temporary key.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "7"
logging.getLogger("werkzeug").setLevel(logging.ERROR)

import boto3
import bucket_orders
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
bucket_orders.serve(client)
