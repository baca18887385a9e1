"""Watches over a WebSocket by means of the package websocket-client. Takes the path of a kubeconfig."""

import json
import ssl
import sys

import yaml
from websocket import ABNF, create_connection

with open(sys.argv[1]) as file:
    kubeconfig = yaml.safe_load(file)
server = kubeconfig["clusters"][0]["cluster"]["server"].replace("https://", "wss://")
token = kubeconfig["users"][0]["user"]["token"]

connection = create_connection(
    server + "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas?watch=true&fieldSelector=metadata.name%3Dexempt",
    header=["Authorization: Bearer " + token],
    sslopt={"cert_reqs": ssl.CERT_NONE},
    timeout=60,
)
event = json.loads(connection.recv())
assert event["type"] == "ADDED" and event["object"]["metadata"]["name"] == "exempt", event
connection.ping("hello")
# The server may write the status of the object in between.
frame = connection.recv_frame()
while frame.opcode == ABNF.OPCODE_TEXT:
    frame = connection.recv_frame()
assert frame.opcode == ABNF.OPCODE_PONG and frame.data == b"hello", frame
print("watching", flush=True)
# The server stops, and says so.
frame = connection.recv_frame()
while frame.opcode == ABNF.OPCODE_TEXT:
    frame = connection.recv_frame()
assert frame.opcode == ABNF.OPCODE_CLOSE and frame.data == (1000).to_bytes(2, "big"), frame
print("done")
