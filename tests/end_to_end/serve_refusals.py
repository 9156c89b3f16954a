"""What `penstock serve` refuses of callers that mean no good, or mean too much: serve_refusals_test.sh.

    serve_refusals.py http PORT MODEL      slow heads; bodies that are long, dense, slow, or of numbers that are none
    serve_refusals.py late PORT MODEL      a request whose time is over before others share its batch
    serve_refusals.py grpc PORT MODEL PID  calls that send nothing, and messages that grow
    serve_refusals.py rows PORT MODEL      answers that are much longer than requests
    serve_refusals.py long PORT PID        messages of 600 MiB, which the server may not take
    serve_refusals.py strangers PORT PID   connections that say nothing, and streams that are reset
    serve_refusals.py door PORT MODEL      connections to the door for HTTP that say nothing
    serve_refusals.py untaken PORT PID     calls whose answers nobody takes
"""

import json
import os
import re
import socket
import sys
import threading
import time

import numpy
import serving
import strangers


def describe(port, model):
    """Name, datatype and shape of the model's input, without its rows."""
    found = json.loads(serving.request(port, "GET", f"/v2/models/{model}")[2])["inputs"][0]
    return found["name"], found["datatype"], found["shape"][1:]


def ask(port, model, text):
    """Status and answer of a request that is JSON already."""
    status, _, body = serving.request(port, "POST", f"/v2/models/{model}/infer", text.encode())
    return status, json.loads(body)


def check_dense(port, model):
    """Numbers of a digit each, in one list or each in its own, are as good as others."""
    name, datatype, shape = describe(port, model)
    count = int(numpy.prod(shape))
    head = f'{{"inputs":[{{"name":"{name}","datatype":"{datatype}","shape":{json.dumps([1, *shape])},"data":['
    wanted = serving.infer(port, model, name, numpy.zeros([1, *shape], numpy.float32))
    for number in "0", "[0]":
        status, found = ask(port, model, head + ",".join([number] * count) + "]}]}")
        assert status == 200, (number, found)
        assert numpy.array(found["outputs"][0]["data"], numpy.float32).tobytes() == wanted.tobytes(), number
    status, found = ask(port, model, head + ",".join(["1e300"] * count) + "]}]}")
    assert status == 400 and "no float32" in found["error"], found
    assert ask(port, model, "")[0] == 400


def check_heads(port, model):
    """A head that trickles ends its connection, and one that never comes too; others are answered meanwhile."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as silent:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=0.1) as connection:
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: here\r\nX: ")
            while time.monotonic() < began + 10:
                assert serving.request(port, "GET", "/v2/health/live")[0] == 200
                try:
                    connection.sendall(b"x")
                    if connection.recv(1) == b"":
                        break
                except TimeoutError:
                    pass
                except OSError:
                    break
        passed = time.monotonic() - began
        assert 0.9 < passed < 5, f"a head that trickles held its connection for {passed} s"
        assert silent.recv(1) == b"" and time.monotonic() < began + 5, "a silent connection is held"
    # after an answer a connection may be idle for longer than that
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for _ in range(2):
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: here\r\n\r\n")
            answer = connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            time.sleep(1.5)


def check_untaken_answers(port):
    """Who asks much and takes the answers bit by bit is hung up on."""
    began, taken = time.monotonic(), 0
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.1)
        connection.connect(("127.0.0.1", port))
        while time.monotonic() < began + 12:
            try:
                connection.send(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n" * 1000)
            except TimeoutError:
                pass
            except OSError:
                return
            time.sleep(0.05)
            try:
                taken += len(connection.recv(1, socket.MSG_DONTWAIT))
            except OSError:
                pass
    raise AssertionError(f"answers that are not taken hold a connection; {taken} bytes were")


def check_bodies(port, model):
    """A body without a length is refused when it is too long, and one that trickles ends its connection."""
    path = f"/v2/models/{model}/infer"
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
        piece = b"10000\r\n" + bytes(0x10000) + b"\r\n"
        connection.sendall(head.encode() + piece * 20 + b"0\r\n\r\n")
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 413 "), answer
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=0.1) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n".encode())
        while time.monotonic() < began + 10:
            try:
                connection.sendall(b" ")
                if connection.recv(1) == b"":
                    return
            except TimeoutError:
                pass
            except OSError:
                return
    raise AssertionError("a body that trickles holds its connection")


def check_late(port, model):
    """A request is refused when its time is over, and not when its batch would have begun."""
    name, _, shape = describe(port, model)
    began = time.monotonic()
    found = serving.infer(port, model, name, numpy.zeros([1, *shape], numpy.float32))
    passed = time.monotonic() - began
    assert isinstance(found, tuple) and found[0] == 504 and passed < 4, (found, passed)


def memory(pid):
    """Most bytes that a process has had in memory."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) * 1024


def growth(pid, before):
    """Bytes that it has more than before; 0 under a sanitizer, which keeps what was freed."""
    return 0 if re.search("address|thread", os.environ["PENSTOCK"]) else memory(pid) - before


def check_grpc(port, model, pid):
    """Calls that send nothing do not keep others out; a short message that would become long is refused before."""
    import grpc

    def open_channel():
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        return grpc.insecure_channel(f"127.0.0.1:{port}", options=options)

    ended, silent, other = threading.Event(), open_channel(), open_channel()

    def nothing():
        ended.wait(60)
        yield from ()

    held = [silent.stream_stream(serving.SERVICE + "ModelInfer")(nothing()) for _ in range(100)]
    live = other.unary_unary(serving.SERVICE + "ServerLive")
    for _ in range(100):
        try:
            answered = live(b"", timeout=5) == b"\x08\x01"
        except grpc.RpcError:
            answered = False
        if answered and all(call.done() for call in held):
            break
        time.sleep(0.1)
    assert answered and all(call.done() for call in held), sum(call.done() for call in held)
    ended.set()
    before = memory(pid)
    try:
        other.unary_unary(serving.SERVICE + "ModelInfer")(bytes(200 << 20), compression=grpc.Compression.Gzip, timeout=50)
        raise AssertionError("a compressed message was taken")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error
    grown = growth(pid, before)
    assert grown < 50 << 20, f"a message of 200 KB took {grown} bytes"


def check_rows(port, model):
    """Rows are as many as the answer may have numbers, and always as many as a batch has."""
    name, _, shape = describe(port, model)
    for count, wanted in (16, 200), (17, 400):
        found = serving.infer(port, model, name, numpy.zeros([count, *shape], numpy.float32))
        status = found[0] if isinstance(found, tuple) else 200
        assert status == wanted, (count, found)


def check_long(port, pid):
    """What is beyond the limit of a message is put together, but never of more than calls may have."""

    def pour(caller):
        caller.hear(1)
        caller.open(1, path=b"/inference.GRPCInferenceService/ModelInfer")
        caller.pour(1, strangers.message(b"", 600 << 20), 600 << 20, 3)

    before = memory(pid)
    callers = strangers.callers(port, 6)
    threads = [threading.Thread(target=pour, args=[caller]) for caller in callers]
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, growth(pid, before))
        time.sleep(0.01)
    assert most < 200 << 20, f"6 callers took {most} bytes"


INFER = b"/inference.GRPCInferenceService/ModelInfer"


def is_live(port, seconds=10):
    """Whether somebody else is answered within that time: one who is turned away comes again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for caller in strangers.callers(port, 1, 1):
            caller.hear(1)
            caller.open(1, path=b"/inference.GRPCInferenceService/ServerLive")
            caller.send(strangers.frame(strangers.DATA, 1, 1, strangers.message(b"")))
            caller.hear_until(lambda: caller.heard.endswith(b"\x08\x01"), 1)
            caller.socket.close()
            if caller.heard.endswith(b"\x08\x01"):
                return True
        time.sleep(0.1)
    return False


def count_taken(callers):
    """How many of them are not hung up on, after a moment."""
    time.sleep(0.2)
    for caller in callers:
        for _ in range(5):
            caller.hear(0)
    return sum(not caller.is_over for caller in callers)


def silent_callers(port):
    """Of a hundred connections that say nothing, 12 are taken: those of callers before may still hold a place or two."""
    deadline = time.monotonic() + 10
    while True:
        made = strangers.callers(port, 100, 1, says_hello=False)
        taken = count_taken(made)
        assert taken <= 12, taken
        if taken >= 10:
            return made
        assert time.monotonic() < deadline, taken
        for caller in made:
            caller.socket.close()
        time.sleep(0.2)


def is_closed(caller):
    """Whether the other end has ended it, within ten seconds."""
    caller.hear_until(lambda: False, 10)
    return caller.is_over


def check_strangers(port, pid):
    """Of 32 connections 24 are from one address, and 12 of these may say nothing; who does is hung up on."""
    before = memory(pid)
    made = silent_callers(port)
    assert is_live(port), "silent connections keep others out"
    assert all(is_closed(caller) for caller in made), "silent connections are held"
    block = strangers.headers(path=INFER)
    reset = strangers.frame(strangers.RESET, 0, 1, b"\0\0\0\x08")
    caller = strangers.callers(port, 1)[0]
    caller.send(b"".join(strangers.frame(strangers.HEADERS, 4, stream, block) + reset[:5] + stream.to_bytes(4, "big") +
                         reset[9:] for stream in range(1, 40001, 2)))
    assert is_live(port)
    grown = growth(pid, before)
    assert grown < 48 << 20, f"strangers took {grown} bytes"


def check_door(port):
    """Over HTTP as over gRPC."""
    made = silent_callers(port)
    for _ in range(50):
        try:
            if serving.request(port, "GET", "/v2/health/live")[0] == 200:
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("silent connections keep others out")


def check_untaken(port, pid):
    """Calls whose answers are not taken, though others wait for their places, end after a while."""
    caller = strangers.callers(port, 1, says_hello=False)[0]
    caller.send(strangers.PREFACE + strangers.frame(strangers.SETTINGS, 0, 0, bytes([0, 4, 0, 0, 0, 0])))
    for stream in range(1, 200, 2):
        caller.open(stream, path=b"/inference.GRPCInferenceService/ServerMetadata")
        caller.send(strangers.frame(strangers.DATA, 1, stream, strangers.message(b"")))
    time.sleep(0.3)
    assert is_live(port), "answers that nobody takes keep others out"
    assert memory(pid) > 0


if __name__ == "__main__":
    what, port, model = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if what == "http":
        check_dense(port, model)
        check_heads(port, model)
        check_bodies(port, model)
        check_untaken_answers(port)
    elif what == "late":
        check_late(port, model)
    elif what == "grpc":
        check_grpc(port, model, int(sys.argv[4]))
    elif what == "door":
        check_door(port)
    elif what in ("long", "strangers", "untaken"):
        {"long": check_long, "strangers": check_strangers, "untaken": check_untaken}[what](port, int(model))
    else:
        check_rows(port, model)
