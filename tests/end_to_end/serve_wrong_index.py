"""Requests with good and with wrong tokens to a server, at once: serve_wrong_index_test.sh.

    serve_wrong_index.py HTTP_PORT GRPC_PORT WHO TOKENS.npy OUTPUTS.npy
        WHO: "node", where one finds wrong tokens, or "door", where they are known before
"""

import json
import sys
import threading
import time

import grpc
import numpy
import serving

MODEL = "net"
WORDS = {
    # the second row of three, turned: its first number comes second
    "node": ("gather 'table': index 20 at position %d is outside of [-20, 20), while running gather", "which reads 'turned", 1),
    "door": ("input 'tokens': index 20 at position %d is outside of [-20, 20) of gather 'table'", "", 3),
}


def over_http(port, rows):
    """The outputs; or the code and words of a refusal."""
    found = serving.infer(port, MODEL, "tokens", rows, headers={"Connection": "close"})
    if isinstance(found, numpy.ndarray):
        return found
    return found[0], json.loads(found[1])["error"]


def over_grpc(port, rows):
    """Likewise, with a code of gRPC as its name."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        message = serving.infer_message(MODEL, "tokens", rows)
        try:
            answer = channel.unary_unary(serving.SERVICE + "ModelInfer")(message, timeout=60)
        except grpc.RpcError as error:
            return error.code().name, error.details()
    raw = [content for number, content in serving.fields(answer) if number == 6]
    return numpy.frombuffer(raw[0], numpy.float32).reshape(len(rows), -1)


def spoil(rows, row=0):
    """The same tokens, but one that no table has."""
    wrong = rows.copy()
    wrong[row, 1, 0] = 20
    return wrong


def judge(what, found, expected, code):
    """Answers to a good request have the numbers of predictions; a wrong one is refused, with the reason."""
    if code is None:
        assert isinstance(found, numpy.ndarray), (what, found)
        assert numpy.array_equal(found, expected), (what, found, expected)
        return
    assert not isinstance(found, numpy.ndarray) and found[0] == code, (what, found)
    assert "gather 'table" in found[1] and "index 20 at position" in found[1], (what, found)
    assert "\n" not in found[1] and "127.0.0.1" not in found[1], (what, found)


def ask_at_once(doors, tokens, outputs, requests):
    """`requests`: door, first row, rows, and the row that is wrong (None: none is). All are sent together."""
    found = [None] * len(requests)

    def ask(index):
        door, first, count, wrong = requests[index]
        function, port, _ = doors[door]
        rows = tokens[first : first + count]
        found[index] = function(port, rows if wrong is None else spoil(rows, wrong))

    threads = [threading.Thread(target=ask, args=[index]) for index in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (door, first, count, wrong), answer in zip(requests, found, strict=True):
        code = None if wrong is None else doors[door][2]
        judge((door, first, count, wrong), answer, outputs[first : first + count], code)
    return found


def main(http_port, grpc_port, who, tokens_file, outputs_file):
    """Alone, in one batch, in several, and over several batches."""
    tokens, outputs = numpy.load(tokens_file), numpy.load(outputs_file)
    doors = {
        "http": (over_http, int(http_port), 400),
        "grpc": (over_grpc, int(grpc_port), "INVALID_ARGUMENT"),
    }

    def ask(*requests):
        return ask_at_once(doors, tokens, outputs, requests)

    for door in doors:
        found = ask((door, 0, 2, 0))
        text, reads, position = WORDS[who]
        assert text % position in found[0][1] and reads in found[0][1], found
        ask((door, 0, 2, None))
    ask(("http", 0, 2, None), ("grpc", 2, 2, 1), ("http", 4, 1, 0), ("grpc", 5, 3, None), ("http", 8, 1, None))
    # more rows than a batch has: in the first batch, in the last, and beside others
    ask(("http", 0, 40, 1), ("grpc", 40, 2, None))
    ask(("grpc", 0, 40, 39), ("http", 40, 2, None), ("grpc", 42, 3, None))
    found = ask(("http", 0, 40, 39))
    if who == "node":
        assert "at position 43 " in found[0][1] and "counted from row 32 of the request" in found[0][1], found
    else:
        assert "at position 237 " in found[0][1], found
    ask(("http", 0, 40, 20), ("http", 40, 20, None), ("grpc", 60, 2, 0), ("grpc", 62, 2, None))
    # more of them than a lost worker may come back
    began = time.monotonic()
    for index in range(12):
        ask(("http", 0, 1, 0 if index % 4 else None), ("grpc", 1, 1, 0))
    assert time.monotonic() < began + 60, "wrong tokens are answered ever later"
    ask(*[("grpc" if r % 2 else "http", r, 1, 0 if r % 5 == 0 else None) for r in range(24)])
    ask(("http", 0, 16, None), ("grpc", 16, 16, None))
    status, _, body = serving.request(int(http_port), "GET", "/metrics")
    assert status == 200 and b'penstock_requests_total{outcome="invalid"} ' in body, body
    recoveries = next(line for line in body.decode().splitlines() if line.startswith("penstock_recoveries_total"))
    assert who == "node" or recoveries.endswith(" 0"), recoveries


main(*sys.argv[1:])
