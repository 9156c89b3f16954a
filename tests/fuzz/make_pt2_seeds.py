#!/usr/bin/env python3
"""Writes the seeds of the fuzzers of PyTorch's .pt2 files, cut out of the models that tests read.

  /usr/bin/python3 tests/fuzz/make_pt2_seeds.py

Fuzzers try as many files a second as the files are small, so a seed is a graph of one node, or of a
few that follow one another, with no more than is read. pt2_json has the model.json of such graphs;
pt2_arguments one for each form in which an operator is called; pt2_shapes such with symbols, and
with the list of weights behind a NUL byte; pt2 has archives.
"""
import io
import json
import os
import shutil
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ARCHIVES = ["operators.zip", "sequences.zip"]
BYTES_LIMIT = 3800  # of a single node
WINDOW_BYTES_LIMIT = 2600
WEIGHT_BYTES = 1024  # of weight_0, see pt2_text.h
WIDTHS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 12: 1, 13: 2}


def models():
    """Every model.json that is there, by the name of its file."""
    folder = os.path.join(TESTS, "graph/import/pytorch/models")
    files = {}
    for archive in ARCHIVES:
        with zipfile.ZipFile(os.path.join(folder, archive)) as whole:
            for name in whole.namelist():
                if name.endswith(".pt2"):
                    files[name[:-4]] = whole.read(name)
    folder = os.path.join(TESTS, "reference/pytorch")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".pt2"):
            with open(os.path.join(folder, name), "rb") as file:
                files[name[:-4]] = file.read()
    for name, data in files.items():
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            inner = next(n for n in archive.namelist() if n.endswith("models/model.json"))
            yield name, json.loads(archive.read(inner))


def names_of(argument):
    """The tensors and symbols that an argument names: pairs of kind and name."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            if isinstance(value.get("name"), str):
                found.append(("tensor", value["name"]))
            if isinstance(value.get("as_name"), str):
                found.append(("symbol", value["as_name"]))
            for key, inner in value.items():
                if key != "as_graph":
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(argument)
    return found


def slim(node):
    """A node without what is read for messages alone."""
    return {"target": node["target"], "name": node["name"], "outputs": node["outputs"],
            "inputs": [{"name": i["name"], "arg": slim_argument(i["arg"])} for i in node["inputs"]]}


def slim_argument(argument):
    if "as_graph" not in argument:
        return argument
    graph = argument["as_graph"]["graph"]
    return {"as_graph": {"name": argument["as_graph"]["name"], "graph": slim_graph(graph)}}


def slim_graph(graph):
    keys = ["inputs", "outputs", "sym_int_values", "sym_bool_values", "sym_float_values"]
    slimmed = {key: graph[key] for key in keys if graph.get(key)}
    slimmed["inputs"], slimmed["outputs"] = graph["inputs"], graph["outputs"]
    slimmed["nodes"] = [slim(node) for node in graph["nodes"]]
    slimmed["tensor_values"] = {n: slim_tensor(t) for n, t in graph["tensor_values"].items()}
    return slimmed


def slim_tensor(meta):
    keys = ["dtype", "sizes", "strides", "storage_offset", "layout"]
    return {key: meta[key] for key in keys}


class Cut:
    """A graph of some nodes of a model, with those that compute the symbols that they read."""

    def __init__(self, model, nodes):
        self.model, self.graph = model, model["graph_module"]["graph"]
        self.makers = {}
        for node in self.graph["nodes"]:
            for kind, name in names_of(node["outputs"]):
                self.makers[kind, name] = node
        self.nodes = []
        for node in nodes:
            self.add(node)
        made = {pair for node in self.nodes for pair in names_of(node["outputs"])}
        read = [pair for node in self.nodes for i in node["inputs"] for pair in names_of(i["arg"])]
        self.sources = [name for kind, name in dict.fromkeys(read)
                        if kind == "tensor" and (kind, name) not in made]
        self.results = [name for kind, name in dict.fromkeys(
            pair for node in nodes for pair in names_of(node["outputs"])) if kind == "tensor"]

    def add(self, node):
        for argument in node["inputs"]:
            for kind, name in names_of(argument["arg"]):
                maker = self.makers.get((kind, name))
                if kind == "symbol" and maker is not None and maker not in self.nodes:
                    self.add(maker)
        if node not in self.nodes:
            self.nodes.append(node)

    def symbols(self, key):
        names = {name for node in self.nodes for pair in
                 [*names_of(node["outputs"]), *names_of([i["arg"] for i in node["inputs"]])]
                 for kind, name in [pair] if kind == "symbol"}
        return {n: s for n, s in self.graph.get(key, {}).items() if n in names}

    def tensors(self):
        named = set(self.sources) | {name for node in self.nodes
                                     for kind, name in names_of(node["outputs"])}
        return {n: slim_tensor(t) for n, t in self.graph["tensor_values"].items() if n in named}

    def program(self, ports):
        """`ports` are the input_specs of the sources."""
        graph = {"inputs": [{"as_tensor": {"name": n}} for n in self.sources],
                 "outputs": [{"as_tensor": {"name": n}} for n in self.results],
                 "nodes": [slim(node) for node in self.nodes], "tensor_values": self.tensors()}
        for key in ["sym_int_values", "sym_float_values", "sym_bool_values"]:
            if self.symbols(key):
                graph[key] = self.symbols(key)
        outputs = [{"user_output": {"arg": {"as_tensor": {"name": n}}}} for n in self.results]
        return {"schema_version": {"major": 8, "minor": 20}, "torch_version": "2.15.0",
                "verifiers": ["TRAINING"], "range_constraints": self.model["range_constraints"],
                "graph_module": {"graph": graph,
                                 "signature": {"input_specs": ports, "output_specs": outputs}}}

    def given(self):
        """All sources are inputs."""
        return self.program([{"user_input": {"arg": {"as_tensor": {"name": n}}}}
                             for n in self.sources])

    def stored(self):
        """All sources but the first are parameters and buffers that lie in weight_0; None where
        they do not fit. Gives the program and the list of weights."""
        ports, config, at = [], {}, 0
        tensors = self.tensors()
        for i, name in enumerate(self.sources):
            meta = tensors[name]
            sizes = [size.get("as_int", -1) for size in meta["sizes"]]
            if i == 0 or min(sizes, default=1) <= 0 or meta["dtype"] not in WIDTHS:
                ports.append({"user_input": {"arg": {"as_tensor": {"name": name}}}})
                continue
            width, count = WIDTHS[meta["dtype"]], 1
            for size in sizes:
                count *= size
            at = (at + width - 1) // width * width
            is_parameter = meta["dtype"] == 7 and i % 2 == 1
            role = "parameter" if is_parameter else "buffer"
            ports.append({role: {"arg": {"name": name}, role + "_name": "m." + name}})
            stored = dict(meta, requires_grad=is_parameter, storage_offset={"as_int": at // width})
            config["m." + name] = {"path_name": "weight_0", "is_param": is_parameter,
                                   "use_pickle": False, "tensor_meta": stored}
            at += count * width
        if at > WEIGHT_BYTES or not config:
            return None
        return self.program(ports), {"config": config}


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def form(node):
    """In which form an operator is called: the names and kinds of its arguments."""
    return (node["target"], tuple((i["name"], tuple(i["arg"])) for i in node["inputs"]))


def write(corpus, name, data):
    with open(os.path.join(HERE, "corpus", corpus, name), "wb") as file:
        file.write(data)


def archive_of(program, config):
    """With the fewest files that are read."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        def put(name, content):
            archive.writestr(zipfile.ZipInfo("a/" + name, (1980, 1, 1, 0, 0, 0)), content)
        put("data/weights/weight_0", bytes(range(64)))
        put("data/weights/model_weights_config.json", compact(config))
        put("models/model.json", compact(program))
        put("archive_format", b"pt2")
        put("byteorder", b"little")
    return data.getvalue()


def is_symbolic(node):
    return "sym_" in json.dumps(node["inputs"]) or node["target"].startswith("_operator")


def make_singles(model, seen, counts):
    """A seed for each form of each operator, and such with weights."""
    for node in model["graph_module"]["graph"]["nodes"]:
        if form(node) in seen or counts["of"].get(node["target"], 0) >= 2:
            continue
        cut = Cut(model, [node])
        text = compact(cut.given())
        if not cut.sources or len(text) > BYTES_LIMIT:
            continue
        seen.add(form(node))
        counts["of"][node["target"]] = counts["of"].get(node["target"], 0) + 1
        name = node["target"].replace("torch.ops.", "").replace("/", "_")
        name = "%s-%d" % (name, counts["of"][node["target"]])
        write("pt2_arguments", name, text)
        stored = cut.stored()
        if counts["of"][node["target"]] == 1 and node["target"][15:] in VIEWS and cut.results:
            make_change(node, cut, node["target"][15:])
        if len(cut.nodes) > 1 or is_symbolic(node):
            write("pt2_shapes", name, text)
        elif stored is not None and counts["of"][node["target"]] == 1:
            text = compact(stored[0]) + b"\0" + compact(stored[1])
            if len(text) <= BYTES_LIMIT and counts["stored"] % 4 == 0:
                write("pt2_shapes", name, text)
            counts["stored"] += 1


def make_change(node, cut, name):
    """What the node gives is changed in place: of a view, what it shows is written back."""
    program = cut.given()
    graph = program["graph_module"]["graph"]
    view = cut.results[0]
    graph["nodes"].append({"target": "torch.ops.aten.mul_.Tensor", "name": "changed",
                           "outputs": [{"as_tensor": {"name": "changed"}}],
                           "inputs": [{"name": "self", "arg": {"as_tensor": {"name": view}}},
                                      {"name": "other", "arg": {"as_float": 0.5}}]})
    graph["tensor_values"]["changed"] = graph["tensor_values"][view]
    graph["outputs"] = [{"as_tensor": {"name": n}} for n in [cut.sources[0], "changed"]]
    names = json.dumps(["whole", "part"])
    spec = {"type": "builtins.dict", "context": names, "children_spec": [{"type": None}] * 2}
    program["graph_module"]["module_call_graph"] = [
        {"signature": {"out_spec": json.dumps([1, spec])}}]
    program["graph_module"]["signature"]["output_specs"] = [{"user_output": {}}] * 2
    text = compact(program)
    if len(text) <= BYTES_LIMIT:
        write("pt2_json", "change-of-" + name, text)


VIEWS = ["permute.default", "transpose.int", "t.default", "mT.default", "movedim.int", "alias.default",
         "narrow.default", "split.Tensor", "view.default", "slice.Tensor", "select.int",
         "expand.default", "to.dtype", "contiguous.default", "unbind.int", "detach.default",
         "unfold.default", "squeeze.dim", "diagonal.default"]


def make_windows(name, model, width, step):
    """Nodes that follow one another: views and changes in place work together."""
    nodes = model["graph_module"]["graph"]["nodes"]
    for at in range(0, max(1, len(nodes) - width + 1), step):
        cut = Cut(model, nodes[at:at + width])
        stored = cut.stored()
        text = compact(cut.given())
        if cut.sources and len(text) <= WINDOW_BYTES_LIMIT:
            write("pt2_json", "%s-%d" % (name, at), text)
        if stored is not None:
            text = compact(stored[0]) + b"\0" + compact(stored[1])
            if len(text) <= WINDOW_BYTES_LIMIT:
                write("pt2_shapes", "%s-%d" % (name, at), text)


def make_archives(model):
    nodes = {node["target"]: node for node in model["graph_module"]["graph"]["nodes"]}
    for target in ["torch.ops.aten.relu.default", "torch.ops.aten.linear.default"]:
        if target in nodes:
            cut = Cut(model, [nodes[target]])
            program, config = cut.stored() or (cut.given(), {"config": {}})
            write("pt2", "small-%s.pt2" % target.split(".")[-2], archive_of(program, config))


def main():
    for corpus in ["pt2_json", "pt2_arguments", "pt2_shapes"]:
        shutil.rmtree(os.path.join(HERE, "corpus", corpus), ignore_errors=True)
        os.makedirs(os.path.join(HERE, "corpus", corpus))
    seen, counts = set(), {"of": {}, "stored": 0}
    for name, model in models():
        make_singles(model, seen, counts)
        make_archives(model)
        if name in ["views", "plain", "pictures", "numbered", "half", "tied"]:
            make_windows(name, model, 3, 3 if name == "views" else 6)


main()
