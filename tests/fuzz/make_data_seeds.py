#!/usr/bin/env python3
"""Writes the seeds of the fuzzers of PostgreSQL's values, of what is kept on disk, of tar and gzip files, of short
texts, and of what comes over a local socket; with 'pem' also those of certificates, with new keys.

  /usr/bin/python3 tests/fuzz/make_data_seeds.py [pem]
"""
import functools
import gzip
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def write(folder, name, data):
    path = os.path.join(HERE, "corpus", folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as file:
        file.write(data)


def array(choice, oid, kind, shape, values, has_null=0):
    data = struct.pack(">iiI", len(shape), has_null, oid)
    for side in shape:
        data += struct.pack(">ii", side, 1)
    for value in values:
        item = struct.pack(kind, value)
        data += struct.pack(">i", len(item)) + item
    return bytes([choice]) + data


def make_postgres():
    scalars = [("bool", 0, b"\1"), ("bytes", 1, b"any bytes"), ("int8", 2, struct.pack(">q", -5)),
               ("int2", 3, struct.pack(">h", 7)), ("int4", 4, struct.pack(">i", 1 << 30)),
               ("float4", 5, struct.pack(">f", 1.5)), ("float8", 6, struct.pack(">d", -2.25))]
    for name, choice, data in scalars:
        write("postgres", name, bytes([choice]) + data)
    write("postgres", "flat", array(11, 700, ">f", [3], [1, 2, 3]))
    write("postgres", "table", array(12, 701, ">d", [2, 2], [1, 2, 3, 4]))
    write("postgres", "deep", array(9, 23, ">i", [1, 2, 1, 1, 2, 1], range(4)))
    write("postgres", "empty", array(10, 20, ">q", [], []))
    write("postgres", "null", array(8, 21, ">h", [1], [1], 1))
    write("postgres", "flags", array(7, 16, ">?", [4], [True, False, True, True]))


def make_array_cache():
    numbers = {"name": "x", "is_label": False, "is_pictures": False, "element": "float32", "shape": [3, 32, 32],
               "data": 4294967295}
    pictures = {"name": "y", "is_label": False, "is_pictures": True, "data": 17, "ends": 4}
    label = {"name": "labels", "is_label": True, "is_pictures": False, "element": "int64", "shape": [], "data": 0}
    for name, fields in [("numbers", [numbers, label]), ("pictures", [pictures]), ("all", [numbers, pictures, label])]:
        root = {"schema": "penstock/array-cache/1", "request": "request", "rows": 7, "fields": fields}
        write("array_cache", name, json.dumps(root, indent=2).encode())


make_postgres()
make_array_cache()


def make_tar():
    for name, kind, key in [("ustar", tarfile.USTAR_FORMAT, "a"), ("pax", tarfile.PAX_FORMAT, "ä" * 110),
                            ("gnu", tarfile.GNU_FORMAT, "b" * 120)]:
        bytes_made = io.BytesIO()
        with tarfile.open(fileobj=bytes_made, mode="w", format=kind) as tar:
            for number in range(2):
                for part, data in [("jpg", b"picture"), ("npy", b"array"), ("cls", b"7\n")]:
                    member = tarfile.TarInfo(f"{key}/{number}.{part}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        write("tar", name, bytes_made.getvalue())


make_tar()


def make_gzip():
    text = b"so much at a time as asked for " * 40
    packed = gzip.compress(text, mtime=0)
    seeds = {"one": packed, "two": packed + gzip.compress(b"more", mtime=0), "empty": gzip.compress(b"", mtime=0),
             "zeros": gzip.compress(bytes(1 << 18), mtime=0), "stored": gzip.compress(text, 0, mtime=0),
             "cut": packed[:-9]}
    for name, data in seeds.items():
        write("gzip", name, b"\x07" + data)


def make_texts():
    texts = ["127.0.0.1:4000", "[::1]:65535", "*:1", "host.example:80", "[fe80::1%eth0]:9",
             "g3-s120-w2.safetensors", "g3-s120",
             "postgresql://user:pass%40word@host:5432/name?sslmode=require&password=x", "sqlite:/dev/null",
             "Bearer secret", "12GiB", "1.5 min", "10Gbit/s", "80G", "100 steps", "0x10", "-3",
             "n[01-16]/cpu[0-1]", "^encoder\\.layers\\.[0-9]+\\.(attention|mlp){1,3}$"]
    for i, text in enumerate(texts):
        for choice in range(6):
            write("texts", f"{i:02}-{choice}", bytes([choice]) + text.encode())


def make_greeting():
    for count in range(3):
        write("greeting", f"greeting-{count}", bytes([count]) + struct.pack("<IIQ", 0x70656e72, 1, 7))
    write("greeting", "ask", b"\0" + struct.pack("<IIQ", 0x70656e74, 1, 0))


def make_stream_count():
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    frames = [(4, b""), (1, b"head"), (0, b"data" * 9), (1, b""), (9, b"more")]
    data = preface + b"".join(struct.pack(">I", len(body))[1:] + bytes([kind, 4, 0, 0, 0, 1]) + body
                              for kind, body in frames)
    for pieces in (0, 6, 99):
        write("stream_count", f"frames-{pieces}", bytes([pieces]) + data)


def make_http():
    folder = os.path.join(HERE, "corpus", "infer_json")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            length, body = struct.unpack("<H", file.read(2))[0], file.read()
        head = f"POST /v2/models/net/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n" \
               f"Inference-Header-Content-Length: {min(length, len(body))}\r\n\r\n"
        write("http", "infer-" + name, b"\x00" + head.encode() + body)
    paths = ["/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/net", "/v2/models/net/versions/1/ready",
             "/metrics"]
    get = "".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths)
    write("http", "paths", b"\x00" + get.encode())
    write("http", "no-body", b"\x00POST /v2/models/net/infer HTTP/1.1\r\nHost: a\r\n\r\n")
    write("http", "token", b"\x01GET /v2 HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n")
    write("http", "chunks", b"\x00POST /v2/models/net/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
          b"5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n")


def make_pem():
    """New keys each time: the texts are all that matters."""
    def openssl(*arguments):
        return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        at = functools.partial(os.path.join, folder)
        for name in ["ca", "own", "other"]:
            with open(at(name + ".key"), "wb") as file:
                file.write(openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
        openssl("req", "-x509", "-new", "-key", at("ca.key"), "-subj", "/CN=ca", "-days", "9999", "-out", at("ca"))
        openssl("req", "-x509", "-new", "-key", at("own.key"), "-CA", at("ca"), "-CAkey", at("ca.key"),
                "-subj", "/CN=a.example", "-days", "9999", "-out", at("own"),
                "-addext", "subjectAltName=DNS:*.example,IP:127.0.0.1,IP:::1,URI:spiffe://b/c")
        with open(at("config"), "w", encoding="ascii") as file:
            file.write(f"[ca]\ndefault_ca=a\n[a]\ndatabase={at('index')}\ndefault_md=sha256\n"
                       "default_crl_days=9999\n[own]\n")
        with open(at("index"), "w", encoding="ascii") as file:
            file.write("R\t300101000000Z\t250101000000Z\t0A\tunknown\t/CN=a\n")
        openssl("ca", "-gencrl", "-config", at("config"), "-keyfile", at("ca.key"), "-cert", at("ca"),
                "-out", at("lists"))
        read = {name: open(at(name), "rb").read() for name in ["ca", "own", "ca.key", "own.key", "other.key", "lists"]}
    write("pem", "whole", b"\n%\n".join([read["ca"], read["own"] + read["ca"], read["own.key"]]))
    write("pem", "lists", b"\n%\n".join([read["ca"], read["own"] + read["ca"], read["own.key"], read["lists"]]))
    write("pem", "other_key", b"\n%\n".join([read["ca"], read["own"], read["other.key"]]))
    write("pem", "own_authority", b"\n%\n".join([read["ca"], read["ca"], read["ca.key"]]))
    write("pem", "all_in_one", read["own"] + read["own.key"])


make_gzip()
make_texts()
make_greeting()
make_http()
make_stream_count()
if "pem" in sys.argv[1:]:
    make_pem()
