#!/usr/bin/python3
"""An ordinary gRPC client that speaks penstock.proto with a server of ours.

  grpc_client.py PORT FOLDER      FOLDER: where what protoc makes is put

Asks for its health, opens a link as peer 7 of job 'test' to peer 1, exchanges a message and a
tensor with it, and closes the link. Exit code 0 when all of that is as penstock.proto says.
"""
import glob
import os
import queue
import socket
import struct
import subprocess
import sys

import grpc

CHUNK = 1 << 20
PORT = sys.argv[1]
METHOD = "/penstock.Penstock/Exchange"


def make_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = make_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def check_health(channel):
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"", timeout=5) == b"\x08\x01"
    assert check(b"\x0a\x11penstock.Penstock", timeout=5) == b"\x08\x01"
    for method, request, code in (
            ("Check", b"\x0a\x07another", grpc.StatusCode.NOT_FOUND),
            ("Check", b"\xff\xff\xff", grpc.StatusCode.INVALID_ARGUMENT),
            ("Watch", b"", grpc.StatusCode.UNIMPLEMENTED)):
        try:
            channel.unary_unary("/grpc.health.v1.Health/" + method)(request, timeout=5)
            raise AssertionError(method)
        except grpc.RpcError as error:
            assert error.code() == code, (method, error)


def find_token():
    """A token for one link, from the socket of this user."""
    user = os.getuid()
    doors = [door for folder in (os.environ.get("XDG_RUNTIME_DIR", "/nowhere") + "/penstock",
                                 f"/run/user/{user}/penstock", f"/tmp/penstock-{user}")
             for door in glob.glob(f"{folder}/{PORT}@127.0.0.1@*")]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
        caller.connect(doors[0])
        caller.send(struct.pack("<IIQ", 0x70656E74, 1, 0))
        magic, token = struct.unpack("<I16s", caller.recv(64))
    assert magic == 0x70656E61
    return "once " + token.hex()


def open_stream(channel, pb, token=None):
    out = queue.Queue()
    call = channel.stream_stream(
        METHOD, request_serializer=pb.Envelope.SerializeToString,
        response_deserializer=pb.Envelope.FromString)(
            iter(out.get, None), timeout=30,
            metadata=[("penstock-token", find_token() if token is None else token)])
    return out, call


def check_tokens(channel, pb):
    """Who shows none, or one a second time, is not let in."""
    token = find_token()
    out, first = open_stream(channel, pb, token)
    out.put(pb.Envelope(message=b"too early"))
    for shown, words in ((token, "was used before"), ("", "was used before"),
                         ("once 00", "was used before"), ("once " + 32 * "0", "was used before"),
                         ("file 1 2 3 4", "has none")):
        other, call = open_stream(channel, pb, shown)
        try:
            next(call)
            raise AssertionError(words)
        except grpc.RpcError as error:
            assert words in error.details(), error.details()
        other.put(None)
    bare = channel.stream_stream(METHOD)(iter([]), timeout=30)
    try:
        next(bare)
        raise AssertionError("without a token")
    except grpc.RpcError as error:
        assert "it shows no token" in error.details(), error.details()
    out.put(None)
    assert first.code() == grpc.StatusCode.DATA_LOSS, first.code()


def check_refusals(channel, pb):
    """What the server says to those that it does not take."""
    for introduction, words in (
            (pb.Introduction(version=9, peer=7, callee=1, job="test"), "version 9"),
            (pb.Introduction(version=2, peer=7, callee=1, job="another"), "not 'another'"),
            (pb.Introduction(version=2, peer=7, callee=2, job="test"), "here is peer 1, not 2"),
            (pb.Introduction(version=2, peer=1, callee=1, job="test"), "calls itself peer 1"),
            (pb.Introduction(version=2, peer=5000, callee=1, job="test"), "peer 5000")):
        out, call = open_stream(channel, pb)
        out.put(pb.Envelope(introduction=introduction))
        try:
            next(call)
            raise AssertionError(words)
        except grpc.RpcError as error:
            assert words in error.details(), error.details()
        out.put(None)
    out, call = open_stream(channel, pb)
    out.put(pb.Envelope(message=b"too early"))
    try:
        next(call)
        raise AssertionError("early")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.DATA_LOSS, error
    out.put(None)


def check_oversized(pb):
    """An envelope above the limit is not taken; a stranger's is not even read to its end."""
    for is_stranger, code in ((False, grpc.StatusCode.RESOURCE_EXHAUSTED),
                              (True, grpc.StatusCode.UNAVAILABLE)):
        own = (("grpc.use_local_subchannel_pool", 1),)  # a connection of its own
        with grpc.insecure_channel("127.0.0.1:" + PORT, own) as channel:
            out, call = open_stream(channel, pb)
            if not is_stranger:
                out.put(pb.Envelope(introduction=pb.Introduction(
                    version=2, peer=8, callee=1, job="test")))
                next(call)
            out.put(pb.Envelope(message=bytes(3 * CHUNK)))
            try:
                next(call)
                raise AssertionError("oversized")
            except grpc.RpcError as error:
                assert error.code() == code, error
            out.put(None)


def check_lies(channel, pb):
    """Numbers and acknowledgements that cannot be end the link, with the reason."""
    who = pb.Introduction(version=2, peer=8, callee=1, job="test")
    frame = pb.Frame(kind=pb.Frame.TENSOR, bytes=3)
    for lie, words in (
            (pb.Envelope(number=2, message=b"x"), "not its turn"),
            (pb.Envelope(message=b"x"), "not its turn"),
            (pb.Envelope(number=2, chunk=pb.Chunk(frame=frame, payload=b"abc")), "not its turn"),
            (pb.Envelope(number=1, chunk=pb.Chunk(payload=b"abc")), "belongs to no frame"),
            (pb.Envelope(messages_received=1), "never sent"),
            (pb.Envelope(number=1, message=b"x", frames_received=1 << 63), "never sent"),
            (pb.Envelope(pieces_received=1), "never sent")):
        out, call = open_stream(channel, pb)
        out.put(pb.Envelope(introduction=who))
        next(call)
        out.put(lie)
        try:
            for _ in call:
                pass
            raise AssertionError(words)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DATA_LOSS, error
            assert words in error.details(), error.details()
        out.put(None)
    who.session, who.resumes = 5, 6
    out, call = open_stream(channel, pb)
    out.put(pb.Envelope(introduction=who))
    try:
        next(call)
        raise AssertionError("resumed")
    except grpc.RpcError as error:
        assert "not known here any more" in error.details(), error.details()
    out.put(None)


def send_tensor(out, pb):
    data = bytes(i * 7 % 251 for i in range(CHUNK + 12))
    frame = pb.Frame(kind=pb.Frame.VALUE, generation=3, incarnation=99, step=4, microbatch=1,
                     channel=5, element=pb.Frame.FLOAT32, shape=[262147], bytes=len(data))
    first, second = data[:CHUNK], data[CHUNK:]
    out.put(pb.Envelope(number=1, chunk=pb.Chunk(
        frame=frame, checksum=crc32c(first), payload=first)))
    out.put(pb.Envelope(number=1, chunk=pb.Chunk(
        position=CHUNK, checksum=crc32c(second), payload=second)))


def receive_tensor(call):
    """Messages may come between chunks; returns them, and the frame's bytes."""
    messages, data, frame = [], b"", None
    while frame is None or len(data) != frame.bytes or not messages:
        envelope = next(call)
        content = envelope.WhichOneof("content")
        if content is None:
            continue
        assert envelope.number == 1
        if content == "message":
            messages.append(envelope.message)
            continue
        chunk = envelope.chunk
        if chunk.HasField("frame"):
            frame = chunk.frame
        assert chunk.position == len(data)
        assert chunk.checksum == crc32c(chunk.payload)
        data += chunk.payload
    return messages, frame, data


def main():
    folder = sys.argv[2]
    subprocess.run(["protoc", "--python_out=" + folder, "-Ischeduler/transport", "penstock.proto"],
                   check=True)
    sys.path.insert(0, folder)
    import penstock_pb2 as pb  # pylint: disable=import-error,import-outside-toplevel
    channel = grpc.insecure_channel("127.0.0.1:" + PORT)
    check_health(channel)
    check_tokens(channel, pb)
    check_refusals(channel, pb)
    check_oversized(pb)
    check_lies(channel, pb)
    out, call = open_stream(channel, pb)
    out.put(pb.Envelope(introduction=pb.Introduction(
        version=2, peer=7, callee=1, generation=3, incarnation=99, job="test")))
    answer = next(call).introduction
    assert (answer.version, answer.peer, answer.generation, answer.incarnation) == (2, 1, 3, 78)
    assert answer.job == "test"
    out.put(pb.Envelope(number=1, message="from python".encode()))
    send_tensor(out, pb)
    messages, frame, data = receive_tensor(call)
    assert messages == [b"to python"], messages
    assert (frame.element, list(frame.shape), frame.sequence) == (pb.Frame.UINT8, [3, 5], 0)
    assert data == bytes(range(15))
    out.put(pb.Envelope(messages_received=1, frames_received=1))
    out.put(pb.Envelope(farewell=pb.Farewell(code=0, reason="all is said")))
    out.put(None)
    for envelope in call:
        assert envelope.WhichOneof("content") is None, "more than was announced"
    assert call.code() == grpc.StatusCode.OK, call.code()
    assert dict(call.trailing_metadata()) == {"penstock-version": "1"}


main()
