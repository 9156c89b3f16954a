"""Models to train over several devices, and data for them, with nothing but Python.

  make_training_models.py FOLDER NAME...

Writes FOLDER/NAME.onnx, NAME_x.npy and NAME_y.npy for each NAME:
  mlp        seven layers
  branching  convolutions in two branches, twice, with batch normalization and dropout
  tied       integer tokens; the table of embeddings is the last layer's weight too
  embedding  integer tokens; a table of which a step picks few rows
  gpt        integer tokens, a layer of causal attention, dropout, and a tied table; gpt:N with
             windows of N tokens, and a mask that is filled in and no parameter
  resnet18   18 layers of residual blocks for pictures of 64 x 64; resnet18:16 with 16 channels at
             first instead of 64
  heads      integer tokens; two layers of attention with 4 heads, a tied table; heads:N with N
  fused      integer tokens; two layers of attention with queries, keys and values in one product
  fat        three layers, of which one is larger than all others
  wide       eight layers whose weights take more memory than all else, 4 MiB each; wide:N of N rows
             and columns
  chain      128 small layers; chain:N with N
"""
import array
import random
import struct
import sys

FLOAT, INT64, BOOL = 1, 7, 9
BLOCK = 65537  # weights repeat after so many: prime, so that no two filters are equal


# ---- protobuf

def varint(number):
    number &= 2**64 - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A field of a message: an integer, a float, or the bytes of a text or message."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)


def value_info(name, element, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, shape)))


class Model:
    """An ONNX graph that grows; what makes a layer returns the name of its output."""

    def __init__(self, name):
        self.name, self.graph, self.count = name, b"", {}
        self.dice = random.Random(name)

    def fresh(self, kind):
        self.count[kind] = self.count.get(kind, 0) + 1
        return f"{kind}{self.count[kind]}"

    def node(self, op, inputs, outputs=None, **attributes):
        name = self.fresh(op.lower())
        outputs = [name + "_y"] + [name + end for end in outputs or []]
        node = b"".join(field(1, v) for v in inputs) + b"".join(field(2, v) for v in outputs)
        node += field(3, name) + field(4, op)
        node += b"".join(field(5, attribute(k, v)) for k, v in attributes.items())
        self.graph += field(1, node)
        return outputs[0]

    def tensor(self, name, element, dims, raw):
        dims_bytes = b"".join(field(1, d) for d in dims)
        self.graph += field(5, dims_bytes + field(2, element) + field(8, name) + field(9, raw))
        return name

    def weight(self, name, dims, spread):
        count = 1
        for d in dims:
            count *= d
        values = array.array("f", (self.dice.uniform(-spread, spread)
                                   for _ in range(min(count, BLOCK))))
        raw = values.tobytes()
        raw = (raw * (4 * count // len(raw) + 1))[:4 * count]
        return self.tensor(name, FLOAT, dims, raw)

    def constant(self, name, dims, value):
        count = 1
        for d in dims:
            count *= d
        return self.tensor(name, FLOAT, dims, struct.pack("<f", value) * count)

    def dense(self, x, inputs, outputs, relu=True):
        name = self.fresh("fc")
        w = self.weight(name + ".weight", [outputs, inputs], (3 / inputs) ** 0.5)
        b = self.constant(name + ".bias", [outputs], 0.01)
        x = self.node("Gemm", [x, w, b], transB=1)
        return self.node("Relu", [x]) if relu else x

    def dense_rows(self, x, inputs, outputs):
        name = self.fresh("fc")
        y = self.node("MatMul", [x, self.weight(name + ".weight", [inputs, outputs],
                                                (3 / inputs) ** 0.5)])
        return self.node("Add", [y, self.constant(name + ".bias", [outputs], 0.01)])

    def split(self, x, count, axis=2):
        self.node("Split", [x], [f"_{i}" for i in range(1, count)], axis=axis)
        name = f"split{self.count['split']}_y"
        return [name] + [f"{name[:-2]}_{i}" for i in range(1, count)]

    def conv(self, x, inputs, outputs, kernel, stride=1):
        name = self.fresh("conv")
        spread = (3 / (inputs * kernel * kernel)) ** 0.5
        w = self.weight(name + ".weight", [outputs, inputs, kernel, kernel], spread)
        return self.node("Conv", [x, w], kernel_shape=[kernel] * 2, strides=[stride] * 2,
                         pads=[kernel // 2] * 4)

    def norm(self, x, channels, relu=True):
        name = self.fresh("bn")
        operands = [x, self.constant(name + ".weight", [channels], 1.0),
                    self.constant(name + ".bias", [channels], 0.0),
                    self.constant(name + ".running_mean", [channels], 0.0),
                    self.constant(name + ".running_var", [channels], 1.0)]
        x = self.node("BatchNormalization", operands, ["_mean", "_var"], training_mode=1)
        return self.node("Relu", [x]) if relu else x

    def dropout(self, x, ratio):
        if "ratio" not in self.count:
            self.count["ratio"] = 1
            self.tensor("ratio", FLOAT, [], struct.pack("<f", ratio))
            self.tensor("trains", BOOL, [], b"\1")
        return self.node("Dropout", [x, "ratio", "trains"], seed=7)

    def write(self, folder, element, dims, y, out_dims):
        graph = self.graph + field(2, self.name)
        graph += field(11, value_info("x", element, ["batch"] + dims))
        graph += field(12, value_info(y, FLOAT, ["batch"] + out_dims))
        with open(f"{folder}/{self.name}.onnx", "wb") as out:
            out.write(field(1, 8) + field(7, graph) + field(8, field(2, 17)))


# ---- data

def write_npy(path, kind, dims, values):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(dims)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + values.tobytes())


def write_data(folder, name, count, dims, classes):
    """Pictures or vectors whose brightness says the class, with noise."""
    size = 1
    for d in dims:
        size *= d
    dice = random.Random("data")
    noise = array.array("f", (dice.uniform(-1, 1) for _ in range(BLOCK)))
    values, labels = array.array("f"), array.array("q")
    for i in range(count):
        label = dice.randrange(classes)
        first = dice.randrange(BLOCK // 2)
        labels.append(label)
        part = (noise[first:] + noise * (size // BLOCK + 1))[:size]
        lit = size * label // classes
        for k in range(lit, min(size, lit + size // classes // 2 + 1)):
            part[k] += 1.5
        values.extend(part)
    write_npy(f"{folder}/{name}_x.npy", "<f4", [count] + dims, values)
    write_npy(f"{folder}/{name}_y.npy", "<i8", [count], labels)


# ---- the models

def mlp(model, folder, _):
    x, width = "x", 64
    for outputs in (128, 96, 128, 96, 128, 96):
        x, width = model.dense(x, width, outputs), outputs
    model.write(folder, FLOAT, [64], model.dense(x, width, 10, relu=False), [10])
    write_data(folder, model.name, 90, [64], 10)


def branching(model, folder, _):
    x = model.norm(model.conv("x", 3, 8, 3), 8)
    for _ in range(2):
        left = model.norm(model.conv(x, 8, 8, 3), 8)
        right = model.dropout(model.conv(x, 8, 8, 1), 0.25)
        both = model.node("Concat", [left, right], axis=1)
        x = model.node("Add", [model.norm(model.conv(both, 16, 8, 3), 8, relu=False), x])
        x = model.node("Relu", [x])
    x = model.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = model.node("Flatten", [model.node("GlobalAveragePool", [x])], axis=1)
    model.write(folder, FLOAT, [3, 12, 12], model.dense(x, 8, 5, relu=False), [5])
    write_data(folder, model.name, 70, [3, 12, 12], 5)


def tied(model, folder, _):
    words, width, length = 50, 32, 6
    table = model.weight("table", [words, width], 0.3)
    x = model.node("Gather", [table, "x"], axis=0)
    for _ in range(3):
        name = model.fresh("block")
        w = model.weight(name + ".weight", [width, width], 0.3)
        b = model.constant(name + ".bias", [width], 0.0)
        y = model.node("Tanh", [model.node("Add", [model.node("MatMul", [x, w]), b])])
        x = model.node("Add", [x, y])
    turned = model.node("Transpose", [table], perm=[1, 0])
    y = model.node("MatMul", [x, turned])
    model.write(folder, INT64, [length], y, [length, words])
    write_tokens(folder, model.name, words, length)


def write_tokens(folder, name, words, length):
    dice = random.Random("tokens")
    tokens = array.array("q", (dice.randrange(words) for _ in range(60 * length)))
    labels = array.array("q", ((7 * t + 3) % words for t in tokens))
    write_npy(f"{folder}/{name}_x.npy", "<i8", [60, length], tokens)
    write_npy(f"{folder}/{name}_y.npy", "<i8", [60, length], labels)


def embedding(model, folder, size):
    words, width, length = size or 2000, 24, 6
    x = model.node("Gather", [model.weight("table", [words, width], 0.3), "x"], axis=0)
    for _ in range(2):
        w = model.weight(model.fresh("fc") + ".weight", [width, width], 0.3)
        x = model.node("Tanh", [model.node("MatMul", [x, w])])
    y = model.node("MatMul", [x, model.weight("out.weight", [width, words], 0.3)])
    model.write(folder, INT64, [length], y, [length, words])
    write_tokens(folder, model.name, words, length)


def gpt(model, folder, size):
    words, width, length = 50, 32, size or 6
    table = model.weight("table", [words, width], 0.3)

    def project(x, inputs, outputs):
        return model.node("MatMul", [x, model.weight(model.fresh("fc") + ".weight",
                                                     [inputs, outputs], inputs ** -0.5)])

    def norm(x):
        name = model.fresh("ln")
        return model.node("LayerNormalization", [x, model.constant(name + ".weight", [width], 1.0),
                                                 model.constant(name + ".bias", [width], 0.0)])

    mask = b"".join(struct.pack("<f", 0.0 if j <= i else -1e9)
                    for i in range(length) for j in range(length))
    seen = bytes(j <= i for i in range(length) for j in range(length))
    model.tensor("mask", BOOL if size else FLOAT, [length, length], seen if size else mask)
    if size:
        model.constant("hidden", [], -1e9)
    model.constant("scale", [], width ** -0.5)
    x = model.node("Gather", [table, "x"], axis=0)
    x = model.node("Add", [x, model.weight("positions", [length, width], 0.1)])
    for _ in range(2):
        h = norm(x)
        keys = model.node("Transpose", [project(h, width, width)], perm=[0, 2, 1])
        scores = model.node("Mul", [model.node("MatMul", [project(h, width, width), keys]), "scale"])
        scores = (model.node("Where", ["mask", scores, "hidden"]) if size else
                  model.node("Add", [scores, "mask"]))
        seen = model.node("Softmax", [scores], axis=-1)
        y = model.node("MatMul", [seen, project(h, width, width)])
        x = model.node("Add", [x, model.dropout(project(y, width, width), 0.2)])
        y = model.node("Relu", [project(norm(x), width, 4 * width)])
        x = model.node("Add", [x, model.dropout(project(y, 4 * width, width), 0.2)])
    y = model.node("MatMul", [norm(x), model.node("Transpose", [table], perm=[1, 0])])
    model.write(folder, INT64, [length], y, [length, words])
    write_tokens(folder, model.name, words, length)


def resnet18(model, folder, size):
    width = size or 64
    x = model.norm(model.conv("x", 3, width, 7, 2), width)
    x = model.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = width
    for stage in range(4):
        outputs = width << stage
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            y = model.norm(model.conv(x, inputs, outputs, 3, stride), outputs)
            y = model.norm(model.conv(y, outputs, outputs, 3), outputs, relu=False)
            if stride > 1:
                x = model.norm(model.conv(x, inputs, outputs, 1, stride), outputs, relu=False)
            x, inputs = model.node("Relu", [model.node("Add", [y, x])]), outputs
    x = model.node("Flatten", [model.node("GlobalAveragePool", [x])], axis=1)
    model.write(folder, FLOAT, [3, 64, 64], model.dense(x, inputs, 10, relu=False), [10])
    write_data(folder, model.name, 44, [3, 64, 64], 10)


def wide(model, folder, size):
    width = size or 1024
    x = model.dense("x", 32, width)
    for _ in range(8):
        x = model.dense(x, width, width)
    model.write(folder, FLOAT, [32], model.dense(x, width, 10, relu=False), [10])
    write_data(folder, model.name, 64, [32], 10)


def chain(model, folder, size):
    x = model.dense("x", 32, 16)
    for _ in range((size or 128) - 2):
        x = model.dense(x, 16, 16)
    model.write(folder, FLOAT, [32], model.dense(x, 16, 10, relu=False), [10])
    write_data(folder, model.name, 64, [32], 10)


def heads(model, folder, size):
    """Attention of 4 heads behind one product for queries, keys and values, and a perceptron."""
    words, width, length, heads = 50, 32, 6, size or 4
    table = model.weight("table", [words, width], 0.3)

    def project(x, inputs, outputs):
        return model.dense_rows(x, inputs, outputs)

    def by_heads(x):
        x = model.node("Reshape", [x, "by_heads"])
        return model.node("Transpose", [x], perm=[0, 2, 1, 3])

    model.tensor("by_heads", INT64, [4], struct.pack("<4q", 0, length, heads, width // heads))
    model.tensor("by_rows", INT64, [3], struct.pack("<3q", 0, length, width))
    model.constant("scale", [], (width // heads) ** -0.5)
    x = model.node("Gather", [table, "x"], axis=0)
    for _ in range(2):
        parts = model.split(project(x, width, 3 * width), 3)
        q, k, v = (by_heads(part) for part in parts)
        scores = model.node("MatMul", [q, model.node("Transpose", [k], perm=[0, 1, 3, 2])])
        seen = model.node("Softmax", [model.node("Mul", [scores, "scale"])], axis=-1)
        y = model.node("Transpose", [model.node("MatMul", [seen, v])], perm=[0, 2, 1, 3])
        x = model.node("Add", [x, project(model.node("Reshape", [y, "by_rows"]), width, width)])
        y = model.node("Tanh", [project(x, width, 4 * width)])
        x = model.node("Add", [x, project(y, 4 * width, width)])
    y = model.node("MatMul", [x, model.node("Transpose", [table], perm=[1, 0])])
    model.write(folder, INT64, [length], y, [length, words])
    write_tokens(folder, model.name, words, length)


def fused(model, folder, size):
    """Attention behind one product for queries, keys and values, in the two other ways to lay them
    out: (3, heads, width of a head), picked apart as of a stack, and (heads, 3, width of a head)."""
    words, width, length, heads = 50, 32, 6, size or 4
    part = width // heads
    x = model.node("Gather", [model.weight("table", [words, width], 0.3), "x"], axis=0)
    model.tensor("stacked", INT64, [5], struct.pack("<5q", 0, length, 3, heads, part))
    model.tensor("by_heads", INT64, [4], struct.pack("<4q", 0, length, heads, 3 * part))
    model.tensor("by_rows", INT64, [3], struct.pack("<3q", 0, length, width))
    model.constant("scale", [], part ** -0.5)
    for i in range(3):
        model.tensor(f"number{i}", INT64, [], struct.pack("<q", i))

    def attend(x, q, k, v):
        scores = model.node("MatMul", [q, model.node("Transpose", [k], perm=[0, 1, 3, 2])])
        seen = model.node("Softmax", [model.node("Mul", [scores, "scale"])], axis=-1)
        y = model.node("Transpose", [model.node("MatMul", [seen, v])], perm=[0, 2, 1, 3])
        y = model.dense_rows(model.node("Reshape", [y, "by_rows"]), width, width)
        return model.node("Add", [x, y])

    y = model.node("Reshape", [model.dense_rows(x, width, 3 * width), "stacked"])
    y = model.node("Transpose", [y], perm=[2, 0, 3, 1, 4])
    x = attend(x, *(model.node("Gather", [y, f"number{i}"], axis=0) for i in range(3)))
    y = model.node("Reshape", [model.dense_rows(x, width, 3 * width), "by_heads"])
    y = model.node("Transpose", [y], perm=[0, 2, 1, 3])
    x = attend(x, *model.split(y, 3, axis=3))
    model.write(folder, INT64, [length], model.dense_rows(x, width, words), [length, words])
    write_tokens(folder, model.name, words, length)


def fat(model, folder, size):
    """One layer that is larger than all others."""
    width = size or 4096
    x = model.dense(model.dense("x", 64, 64), 64, width)
    model.write(folder, FLOAT, [64], model.dense(x, width, 10, relu=False), [10])
    write_data(folder, model.name, 90, [64], 10)


def main():
    for name in sys.argv[2:]:
        kind, _, size = name.partition(":")
        globals()[kind](Model(kind), sys.argv[1], int(size or 0))


main()
