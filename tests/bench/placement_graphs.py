"""Workloads made from networks of torchvision and from a BERT, for the tables of placement.

Each operator that torch.fx finds becomes a node, mirrored backward; times come from flops and bytes
by a roofline. Needs python3-torch and python3-torchvision.
"""
import json
import math
import os

FLOPS = 10e12      # a second on an accelerator; a core has a twentieth
BANDWIDTH = 10e9   # bytes a second between accelerator and host
MEMORY = 100e9     # bytes a second within an accelerator
CORE_FACTOR = 20.0
BATCH = 8


def bert(layers, width, tokens):
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width)
                                                          for _ in range(4))
            self.norm = nn.LayerNorm(width)

        def forward(self, x):
            heads = width // 64
            shape = (BATCH, tokens, heads, 64)
            query = self.query(x).view(shape).transpose(1, 2)
            key = self.key(x).view(shape).permute(0, 2, 3, 1)
            value = self.value(x).view(shape).transpose(1, 2)
            scores = torch.softmax(torch.matmul(query, key) * 0.125, -1)
            mixed = torch.matmul(scores, value).transpose(1, 2).reshape(BATCH, tokens, width)
            return self.norm(x + self.out(mixed))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.activation, self.norm = nn.GELU(), nn.LayerNorm(width)

        def forward(self, x):
            x = self.attention(x)
            return self.norm(x + self.down(self.activation(self.up(x))))

    return nn.Sequential(nn.Embedding(8192, width), *[Block() for _ in range(layers)],
                         nn.Linear(width, 8192))


def image_model(name):
    import torchvision.models as models
    if name == "inception_v3":
        return models.inception_v3(weights=None, aux_logits=False, init_weights=False)
    return getattr(models, name)(weights=None)


def example(name):
    import torch
    if name.startswith("bert"):
        return torch.zeros((BATCH, 128), dtype=torch.int64)
    side = 299 if name == "inception_v3" else 224
    return torch.zeros((BATCH, 3, side, side))


MODELS = {
    "resnet18": lambda: image_model("resnet18"),
    "resnet50": lambda: image_model("resnet50"),
    "inception_v3": lambda: image_model("inception_v3"),
    "densenet121": lambda: image_model("densenet121"),
    "bert12": lambda: bert(12, 768, 128),
}


def node_flops(node, module, inputs, output):
    """Of one operator, as it is commonly counted."""
    size = output.numel()
    kind = type(module).__name__
    if kind == "Conv2d":
        return 2.0 * size * module.in_channels / module.groups * math.prod(module.kernel_size)
    if kind == "Linear":
        return 2.0 * size * module.in_features
    if getattr(node.target, "__name__", "") == "matmul":
        return 2.0 * size * inputs[0].shape[-1]
    return 0.0


def trace(name):
    """Forward nodes as (seconds, result bytes, parameter bytes, inputs)."""
    import torch
    import torch.fx

    graph = torch.fx.symbolic_trace(MODELS[name]().eval())
    modules = dict(graph.named_modules())
    made, index = [], {}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, node):
            output = super().run_node(node)
            inputs = [self.env[source] for source in node.all_input_nodes]
            tensors = [entry for entry in inputs if isinstance(entry, torch.Tensor)]
            if node.op in ("call_module", "call_function", "call_method") and \
                    isinstance(output, torch.Tensor):
                module = modules.get(node.target) if node.op == "call_module" else None
                parameters = 4.0 * sum(p.numel() for p in module.parameters()) if module else 0.0
                moved = 4.0 * (output.numel() + sum(t.numel() for t in tensors)) + parameters
                seconds = max(node_flops(node, module, tensors, output) / FLOPS, moved / MEMORY)
                sources = [index[source] for source in node.all_input_nodes if source in index]
                index[node] = len(made)
                made.append((seconds, 4.0 * output.numel(), parameters, sources))
            return output

    with torch.no_grad():
        Recorder(graph).run(example(name))
    return made


def training_workload(forward, accelerators, room):
    """The forward nodes mirrored; a forward node and its mirror share a colour. In ms."""
    nodes, edges, count = [], [], len(forward)
    total = sum(result + 4.0 * parameters for _, result, parameters, _ in forward)
    for is_backward in (0, 1):
        for i, (seconds, result, parameters, _) in enumerate(forward):
            latency = 1e3 * seconds * (2.0 if is_backward else 1.0)
            nodes.append({"id": is_backward * count + i, "supportedOnFpga": 1,
                          "cpuLatency": CORE_FACTOR * latency, "fpgaLatency": latency,
                          "isBackwardNode": is_backward, "colorClass": i,
                          "size": (3.0 if is_backward else 1.0) * parameters +
                                  (0.0 if is_backward else result)})
    for i, (_, _, _, sources) in enumerate(forward):
        for source in sources:
            for a, b in ((source, i), (count + i, count + source), (source, count + i)):
                result = forward[a % count][1] if a < count else forward[b % count][1]
                edges.append({"sourceId": a, "destId": b, "cost": 1e3 * result / BANDWIDTH})
    dearest = {}
    for edge in edges:  # all edges of one source have one cost
        source = edge["sourceId"]
        dearest[source] = max(dearest.get(source, 0.0), edge["cost"])
    for edge in edges:
        edge["cost"] = dearest[edge["sourceId"]]
    return {"maxFPGAs": accelerators, "maxCPUs": 1, "maxSizePerFPGA": room * total / accelerators,
            "nodes": nodes, "edges": edges}


def export(folder, accelerators=6, room=1.5):
    """Writes the workloads that are missing; returns the folder."""
    os.makedirs(folder, exist_ok=True)
    for name in MODELS:
        path = f"{folder}/{name}_training.json"
        if os.path.exists(path):
            continue
        with open(path, "w", encoding="ascii") as file:
            json.dump(training_workload(trace(name), accelerators, room), file)
    return folder
