"""tritonclient against `penstock serve`: check_tritonclient.py HTTP_PORT GRPC_PORT MODEL INPUTS.npy OUTPUTS.npy"""

import sys

import numpy
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException


def check(client, kind, model, rows, outputs):
    """The same calls, over either protocol."""
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(model), kind
    assert not client.is_model_ready("other"), kind
    described = client.get_model_metadata(model)
    described = described if isinstance(described, dict) else {"inputs": [{"name": described.inputs[0].name}]}
    name = described["inputs"][0]["name"]
    module = tritonclient.grpc if kind == "grpc" else tritonclient.http
    client.get_server_metadata()

    def infer(part, model=model, name=name):
        given = module.InferInput(name, list(part.shape), "FP32")
        given.set_data_from_numpy(part)
        return client.infer(model, [given], request_id="seven")

    for first, count in (0, 16), (16, 32):
        answer = infer(rows[first : first + count])
        output = answer.get_response()
        output = output["outputs"][0]["name"] if isinstance(output, dict) else output.outputs[0].name
        found = answer.as_numpy(output)
        assert found.tobytes() == outputs[first : first + count].tobytes(), (kind, first)
    for wrong in {"model": "other"}, {"name": "other"}:
        try:
            infer(rows[:1], **wrong)
        except InferenceServerException as error:
            assert "other" in str(error), (kind, error)
        else:
            raise AssertionError((kind, wrong))


http_port, grpc_port, model, inputs, outputs = sys.argv[1:]
for kind, made in (("http", tritonclient.http.InferenceServerClient(f"127.0.0.1:{http_port}")),
                   ("grpc", tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{grpc_port}"))):
    check(made, kind, model, numpy.load(inputs), numpy.load(outputs))
    print(f"tritonclient over {kind}: the bits of predict")
