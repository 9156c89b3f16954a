"""What tests of `penstock serve` share: requests over HTTP and gRPC, written by hand, and load.

    serving.py check HTTP_PORT GRPC_PORT MODEL INPUTS.npy OUTPUTS.npy PARTS [TOKEN]
    serving.py rows HTTP_PORT MODEL INPUTS.npy OUTPUTS.npy SECONDS [COUNT]
        one row after another, or COUNT at once; prints how many requests
    serving.py idle HTTP_PORT COUNT  idle connections; the server answers all the same
    serving.py ready HTTP_PORT SECONDS  prints what the server's readiness was, one code after another
    serving.py tls GRPC_PORT MODEL INPUTS.npy OUTPUTS.npy CA CERT KEY [TOKEN]
        16 rows over TLS, CERT and KEY "-": without; prints what the call came to, "OK" with the bits of predictions
    serving.py plain GRPC_PORT MODEL  a call without TLS; prints what it came to
    serving.py tokens HTTP_PORT MODEL TOKEN  other tokens are refused
    serving.py kept GRPC_PORT MODEL INPUTS.npy OUTPUTS.npy CA CERT KEY FILE
        the same twice over one connection: the second time when FILE, which is made, has gone
    serving.py load HTTP_PORT MODEL INPUTS.npy RATE SECONDS  open loop: requests come whether or not others are answered
"""

import http.client
import json
import os
import socket
import sys
import threading
import time

import numpy

SERVICE = "/inference.GRPCInferenceService/"


def request(port, method, path, body=b"", headers=None, timeout=60):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def infer_body(name, rows, binary=True):
    """The JSON of a request for rows of an input, and the bytes behind it."""
    described = {"name": name, "shape": list(rows.shape), "datatype": datatype(rows)}
    asked = {"inputs": [described]}
    data = b""
    if binary:
        data = rows.tobytes()
        described["parameters"] = {"binary_data_size": len(data)}
        asked["parameters"] = {"binary_data_output": True}
    else:
        described["data"] = rows.tolist()
    return json.dumps(asked).encode(), data


def datatype(rows):
    """As the protocol calls it."""
    return "FP32" if rows.dtype == numpy.float32 else "INT64"


def infer(port, model, name, rows, binary=True, headers=None):
    """The first output of the model for rows of its input `name`; or the status and body, where it is no 200."""
    text, data = infer_body(name, rows, binary)
    sent = dict(headers or {})
    if binary:
        sent["Inference-Header-Content-Length"] = str(len(text))
    status, received, body = request(port, "POST", f"/v2/models/{model}/infer", text + data, sent)
    if status != 200:
        return status, body
    length = int(received.get("Inference-Header-Content-Length", len(body)))
    output = json.loads(body[:length])["outputs"][0]
    if binary:
        return numpy.frombuffer(body[length:], numpy.float32).reshape(output["shape"])
    return numpy.array(output["data"], numpy.float32).reshape(output["shape"])


def varint(number):
    """As protobuf has it."""
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def field(number, content):
    """A field of bytes or text, or of a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def fields(message):
    """Number and content of each field of a message."""
    at = 0

    def read():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    found = []
    while at < len(message):
        key = read()
        if key & 7 == 0:
            found.append((key >> 3, read()))
        else:
            length = read()
            found.append((key >> 3, message[at : at + length]))
            at += length
    return found


def infer_message(model, name, rows, raw=True):
    """A ModelInferRequest."""
    tensor = field(1, name) + field(2, datatype(rows)) + field(3, b"".join(varint(d) for d in rows.shape))
    if not raw:
        tensor += field(5, field(6, rows.tobytes()))
    return field(1, model) + field(3, "seven") + field(5, tensor) + (field(7, rows.tobytes()) if raw else b"")


def check_grpc(port, model, name, rows, outputs, metadata, parts):
    """The bits of predictions over gRPC, and the codes of what is wrong."""
    import grpc

    channel = grpc.insecure_channel(f"127.0.0.1:{port}")

    def call(method, message, timeout=60):
        return channel.unary_unary(SERVICE + method)(message, timeout=timeout, metadata=metadata)

    def refused(method, message, code, timeout=60):
        try:
            call(method, message, timeout)
        except grpc.RpcError as error:
            assert error.code() == code, (method, error)
            return
        raise AssertionError(f"{method}: not refused")

    for method in "ServerLive", "ServerReady":
        assert fields(call(method, b"")) == [(1, 1)], method
    assert fields(call("ModelReady", field(1, model))) == [(1, 1)]
    assert fields(call("ServerMetadata", b""))[0] == (1, b"penstock")
    described = fields(call("ModelMetadata", field(1, model)))
    assert described[0] == (1, model.encode()) and dict(fields(dict(described)[4]))[1] == name.encode()
    for raw in True, False:
        for first, count in parts:
            found = fields(call("ModelInfer", infer_message(model, name, rows[first : first + count], raw)))
            assert dict(found)[3] == b"seven"
            assert dict(found)[6] == outputs[first : first + count].tobytes(), (raw, first)
    codes = grpc.StatusCode
    refused("ModelInfer", infer_message("other", name, rows[:1]), codes.NOT_FOUND)
    refused("ModelInfer", infer_message(model, "other", rows[:1]), codes.NOT_FOUND)
    assert fields(call("ModelReady", field(1, model) + field(2, "1"))) == [(1, 1)]
    refused("ModelMetadata", field(1, model) + field(2, "2"), codes.NOT_FOUND)
    refused("ModelInfer", field(2, "2") + infer_message(model, name, rows[:1]), codes.NOT_FOUND)
    refused("ModelInfer", infer_message(model, name, rows[:1, :-1]), codes.INVALID_ARGUMENT)
    refused("ModelInfer", infer_message(model, name, rows[:2])[:-3], codes.INVALID_ARGUMENT)
    refused("ModelInfer", b"\xff\xff\xff", codes.INVALID_ARGUMENT)
    refused("ModelInfer", b"", codes.INVALID_ARGUMENT)
    refused("ModelStatistics", b"", codes.UNIMPLEMENTED)
    refused("ModelInfer", infer_message(model, name, rows[:1]) + bytes(1 << 21), codes.RESOURCE_EXHAUSTED)
    channel.close()


def check_http(port, model, name, rows, outputs, headers, parts):
    """The same over HTTP."""
    path = f"/v2/models/{model}"

    def status(method, path, body=b"", more=None):
        return request(port, method, path, body, {**headers, **(more or {})})[0]

    for found in "/v2/health/live", "/v2/health/ready", "/v2", path, path + "/ready", path + "/versions/1":
        assert status("GET", found) == 200, found
    described = json.loads(request(port, "GET", path, headers=headers)[2])
    assert described["inputs"][0]["name"] == name and described["inputs"][0]["shape"] == [-1, *rows.shape[1:]], described
    for binary in True, False:
        for first, count in parts:
            found = infer(port, model, name, rows[first : first + count], binary, headers)
            assert not isinstance(found, tuple), found
            assert found.tobytes() == outputs[first : first + count].tobytes(), (binary, first)
    good = {"name": name, "shape": [1, *rows.shape[1:]], "datatype": "FP32", "data": rows[0].tolist()}
    wrong = [
        ("[" * 100, 400), ("{}", 400), ("[]", 400), ("", 400), ('{"inputs": 7}', 400), ('{"inputs": []}', 400),
        ({"inputs": [good, good]}, 400), ({"inputs": [{**good, "name": "other"}]}, 404),
        ({"inputs": [{**good, "datatype": "INT64"}]}, 400), ({"inputs": [{**good, "shape": [-1]}]}, 400),
        ({"inputs": [{**good, "shape": [1 << 40, *rows.shape[1:]]}]}, 400),
        ({"inputs": [{**good, "data": [1, "two"]}]}, 400), ({"inputs": [{**good, "data": good["data"][:-1]}]}, 400),
        ({"inputs": [{**good, "data": None, "parameters": {"binary_data_size": 1 << 50}}]}, 400),
        ({"inputs": [good], "outputs": [{"name": "other"}]}, 404), ({"inputs": [good], "id": "x" * 300}, 400),
    ]
    for body, expected in wrong:
        body = body if isinstance(body, str) else json.dumps(body)
        found = request(port, "POST", path + "/infer", body.encode(), headers)
        assert found[0] == expected and json.loads(found[2])["error"], (body[:80], found)
    shape = json.dumps(good["shape"][1:], separators=(",", ":"))
    said = [  # what is wrong, and what would be right
        ({**good, "shape": [1, *good["shape"][1:], 7]}, f"found the shape [1,{shape[1:-1]},7], expected [N,{shape[1:]} with N rows"),
        ({key: good[key] for key in good if key != "datatype"}, "it lacks a datatype, expected FP32"),
        ({key: good[key] for key in good if key != "shape"}, f"input '{name}': it lacks a shape"),
        ({key: good[key] for key in good if key != "name"}, f"an input lacks a name; the model's first is '{name}'"),
    ]
    for body, text in said:
        found = request(port, "POST", path + "/infer", json.dumps({"inputs": [body]}).encode(), headers)
        assert found[0] == 400 and text in json.loads(found[2])["error"], (text, found)
    for method, wrong_path in ("POST", path + "/versions/2/infer"), ("GET", "/v2/models/other"):
        found = request(port, method, wrong_path, b"{}" if method == "POST" else b"", headers)
        assert found[0] == 404 and f"the model is at {path}," in json.loads(found[2])["error"], found
    assert status("GET", path + "/infer") == 405
    assert status("POST", path + "/infer", b"{}", {"Inference-Header-Content-Length": "9"}) == 400
    assert status("POST", path + "/infer", b"{}", {"Inference-Header-Content-Length": "-1"}) == 400
    assert status("POST", "/v2/models/other/infer", b"{}") == 404
    assert status("GET", "/nothing") == 404 and status("PUT", path) == 405
    # refused by its head: the server reads no more
    assert status("POST", path + "/infer", b"", {"Content-Length": str(1 << 21)}) == 413
    metrics = request(port, "GET", "/metrics", headers=headers)[2].decode()
    assert "penstock_ready 1\n" in metrics and 'penstock_requests_total{outcome="ok"} ' in metrics, metrics


def check(http_port, grpc_port, model, inputs, outputs, parts, token=None):
    """All of it. `parts`, such as "0:1,3:7", are first rows and counts of requests."""
    parts = [tuple(map(int, part.split(":"))) for part in parts.split(",")]
    rows, outputs = numpy.load(inputs), numpy.load(outputs)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    name = json.loads(request(http_port, "GET", f"/v2/models/{model}", headers=headers)[2])["inputs"][0]["name"]
    check_http(http_port, model, name, rows, outputs, headers, parts)
    if token:
        assert request(http_port, "GET", "/v2/health/live")[0] == 401
        assert request(http_port, "GET", "/v2", headers={"Authorization": "Bearer " + token[:-1]})[0] == 401
    check_grpc(grpc_port, model, name, rows, outputs, (("authorization", f"Bearer {token}"),) if token else (), parts)


def send_rows(port, model, inputs, outputs, seconds, at_once=1):
    """One request after another, each with the bits of predictions."""
    rows, outputs = numpy.load(inputs), numpy.load(outputs)
    name = json.loads(request(port, "GET", f"/v2/models/{model}")[2])["inputs"][0]["name"]
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        at = count * at_once % (len(rows) - at_once + 1)
        found = infer(port, model, name, rows[at : at + at_once])
        assert not isinstance(found, tuple), found
        assert found.tobytes() == outputs[at : at + at_once].tobytes(), count
        count += 1
    print(count)


def check_idle(port, count):
    """Connections with no request on them keep nobody away."""
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    assert request(port, "GET", "/v2/health/ready", timeout=10)[0] == 200
    for connection in opened:
        connection.close()


def watch_readiness(port, seconds):
    """What it was, one code after another."""
    codes, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        code = request(port, "GET", "/v2/health/ready")[0]
        if codes[-1:] != [code]:
            codes.append(code)
        time.sleep(0.01)
    print(*codes)


def secure_channel(port, ca, cert, key):
    """A connection of its own, over TLS."""
    import grpc

    def read(path):
        with open(path, "rb") as file:
            return file.read()

    mine = (None, None) if cert == "-" else (read(key), read(cert))
    return grpc.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials(read(ca), *mine),
                               [("grpc.use_local_subchannel_pool", 1)])


def call_secure(channel, model, inputs, outputs, token=None):
    """What a call came to."""
    import grpc

    rows, expected = numpy.load(inputs)[:16], numpy.load(outputs)[:16]
    metadata = (("authorization", token),) if token else ()
    try:
        described = fields(channel.unary_unary(SERVICE + "ModelMetadata")(field(1, model), timeout=20, metadata=metadata))
        name = dict(fields(dict(described)[4]))[1].decode()
        found = channel.unary_unary(SERVICE + "ModelInfer")(infer_message(model, name, rows), timeout=20, metadata=metadata)
    except grpc.RpcError as error:
        return error.code().name
    assert dict(fields(found))[6] == expected.tobytes()
    return "OK"


def call_plain(port, model):
    """What a call without TLS came to."""
    import grpc

    try:
        grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary(SERVICE + "ModelReady")(field(1, model), timeout=5)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def check_tokens(port, model, token):
    """Nothing is told over HTTP to who does not have it."""
    right = f"Bearer {token}"
    for wrong in None, "", "Bearer", "Bearer ", token, right[:-1], right + "x", "Basic " + token, right.swapcase():
        headers = {} if wrong is None else {"Authorization": wrong}
        for method, path in ("GET", "/v2"), ("GET", "/metrics"), ("POST", f"/v2/models/{model}/infer"):
            assert request(port, method, path, b"{}" if method == "POST" else b"", headers)[0] == 401, (wrong, path)
    assert request(port, "GET", "/v2", headers={"Authorization": right})[0] == 200


def call_twice(channel, model, inputs, outputs, path):
    """What two calls over one connection came to; between them, the file is waited for."""
    first = call_secure(channel, model, inputs, outputs)
    with open(path, "w", encoding="ascii"):
        pass
    while os.path.exists(path):
        time.sleep(0.02)
    print(first, call_secure(channel, model, inputs, outputs))


def load(port, model, inputs, rate, seconds):
    """Requests of one row, at a rate that does not wait for answers. Prints a JSON object of what came of them."""
    rows = numpy.load(inputs)
    name = json.loads(request(port, "GET", f"/v2/models/{model}")[2])["inputs"][0]["name"]
    lock, latencies, outcomes, threads = threading.Lock(), [], {}, []

    def one(number, due):
        at = number % len(rows)
        try:
            found = infer(port, model, name, rows[at : at + 1])
            outcome = str(found[0]) if isinstance(found, tuple) else "200"
        except OSError:
            outcome = "refused"
        with lock:
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if outcome == "200":
                latencies.append(time.monotonic() - due)

    begin = time.monotonic()
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        time.sleep(max(0.0, due - time.monotonic()))
        thread = threading.Thread(target=one, args=(number, due))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    took = time.monotonic() - begin
    latencies.sort()

    def quantile(share):
        return latencies[min(len(latencies) - 1, int(share * len(latencies)))] if latencies else None

    print(json.dumps({"outcomes": outcomes, "p50": quantile(0.5), "p99": quantile(0.99),
                      "answered_a_second": len(latencies) / took}))


if __name__ == "__main__":
    verb, arguments = sys.argv[1], sys.argv[2:]
    if verb == "check":
        check(int(arguments[0]), int(arguments[1]), *arguments[2:])
    elif verb == "rows":
        send_rows(int(arguments[0]), *arguments[1:4], float(arguments[4]), *map(int, arguments[5:]))
    elif verb == "idle":
        check_idle(int(arguments[0]), int(arguments[1]))
    elif verb == "ready":
        watch_readiness(int(arguments[0]), float(arguments[1]))
    elif verb == "tls":
        print(call_secure(secure_channel(int(arguments[0]), *arguments[4:7]), *arguments[1:4], *arguments[7:]))
    elif verb == "plain":
        print(call_plain(int(arguments[0]), arguments[1]))
    elif verb == "tokens":
        check_tokens(int(arguments[0]), *arguments[1:3])
    elif verb == "kept":
        call_twice(secure_channel(int(arguments[0]), *arguments[4:7]), *arguments[1:4], arguments[7])
    else:
        load(int(arguments[0]), arguments[1], arguments[2], float(arguments[3]), float(arguments[4]))
