"""Requests pieces of a file over TLS, reads nothing for a while and then everything available.

Arguments: the certificate of the authority, the port, the path, seconds. Prints pairs: requested bytes, received
bytes."""

import json
import socket
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor

context = ssl.create_default_context(cafile=sys.argv[1])
port, path, seconds = int(sys.argv[2]), sys.argv[3], float(sys.argv[4])


def ask(size):
    plain = socket.socket()
    # Keeps the socket buffers of the kernel small; with loopback's segment size they would hold megabytes.
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    plain.settimeout(30)
    plain.connect(("127.0.0.1", port))
    tls = context.wrap_socket(plain, server_hostname="127.0.0.1")
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=0-{size - 1}\r\n\r\n"
    tls.sendall(head.encode())
    return size, tls


def read(size, tls):
    answer = b""
    try:
        while b"\r\n\r\n" not in answer or len(answer.split(b"\r\n\r\n", 1)[1]) < size:
            piece = tls.recv(65536)
            if not piece:
                break
            answer += piece
    except OSError:
        pass
    return size, len(answer.partition(b"\r\n\r\n")[2])


asked = [ask(kib * 1024) for kib in range(80, 177, 8)]
time.sleep(seconds)
with ThreadPoolExecutor(len(asked)) as readers:
    print(json.dumps(list(readers.map(lambda one: read(*one), asked))))
