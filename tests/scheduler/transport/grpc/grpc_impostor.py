#!/usr/bin/python3
"""A server that takes every link, as another user may put it where a worker of ours is expected.

  grpc_impostor.py [BYTES]  prints its port; ends when its standard input does; with a first message of so many bytes
"""
import sys
import time
from concurrent import futures

import grpc

# an Envelope with the Introduction {version: 2, peer: 1}
ANSWER = b"\x0a\x04\x08\x02\x10\x01"


def exchange(request, context):
    next(request)
    yield ANSWER + bytes(int(sys.argv[1])) if len(sys.argv) > 1 else ANSWER
    time.sleep(5)


class Handler(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        return grpc.stream_stream_rpc_method_handler(exchange)


server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), handlers=[Handler()],
                     options=[("grpc.max_send_message_length", -1)])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
server.stop(0)
