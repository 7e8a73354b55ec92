"""A collector of traces: receives OTLP over HTTP in protobuf, and writes each span as a line of JSON.

Arguments: a folder and a mode. `plain` accepts spans; `hang` reads requests and never answers."""

import itertools
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

folder, mode = Path(sys.argv[1]) / "files", sys.argv[2]
folder.mkdir()
lock, numbers = threading.Lock(), itertools.count()


def value(any_value):
    return next(iter(MessageToDict(any_value).values()), None)


def attributes(of):
    return {entry.key: value(entry.value) for entry in of.attributes}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/v1/traces", self.path
        assert self.headers["content-type"] == "application/x-protobuf"
        if mode == "hang":
            threading.Event().wait()
        request = ExportTraceServiceRequest.FromString(body)
        lines = []
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    lines.append(
                        {
                            "resource": attributes(resource.resource),
                            "scope": scope.scope.name,
                            "headers": {name.lower(): text for name, text in self.headers.items()},
                            "trace": span.trace_id.hex(),
                            "span": span.span_id.hex(),
                            "parent": span.parent_span_id.hex(),
                            "kind": span.kind,
                            "name": span.name,
                            "start": span.start_time_unix_nano,
                            "end": span.end_time_unix_nano,
                            "status": span.status.code,
                            "attributes": attributes(span),
                        }
                    )
        # Atomic, so that a reader always sees a whole batch.
        with lock:
            part = folder / "part"
            part.write_text("".join(json.dumps(line) + "\n" for line in lines))
            part.rename(folder / f"batch-{next(numbers)}")
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(json.dumps({"port": server.server_address[1]}), flush=True)
server.serve_forever()
