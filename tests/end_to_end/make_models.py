# Models whose pictures are hard to draw: make_models.py FOLDER
import sys


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A field of a protobuf message: an integer, or bytes of a text or message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def value_info(name):
    """float32[N,16]"""
    shape = field(1, field(2, "N")) + field(1, field(1, 16))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


folder = sys.argv[1]


def write(file, title, names, wire):
    """A graph of relu and add nodes; wire(i) says which earlier nodes node i reads."""
    graph = b""
    for i, name in enumerate(names):
        inputs = ["x" if j < 0 else f"v{j}" for j in wire(i)]
        op = "Relu" if len(inputs) == 1 else "Add"
        node = b"".join(field(1, value) for value in inputs)
        graph += field(1, node + field(2, f"v{i}") + field(3, name) + field(4, op))
    graph += field(2, title) + field(11, value_info("x")) + field(12, value_info(f"v{i}"))
    with open(f"{folder}/{file}", "wb") as out:
        out.write(field(1, 8) + field(7, graph) + field(8, field(2, 13)))


# 10,000 nodes: blocks of four branches with a way around them
def branch(i):
    block, part = divmod(i, 8)
    first = 8 * block - 1
    if part < 4:
        return [first]
    if part < 7:
        return [8 * block if part == 4 else i - 1, 8 * block + part - 3]
    return [i - 1, first]


write("large.onnx", "large", [f"/block.{i // 8}/part.{i % 8}" for i in range(10000)], branch)

# names that would end what they stand in, or run
hostile = ["</script><script>document.title='owned'</script>", "\"><img src=x onerror=alert(1)>",
           "a\"];\nb [label=\"\\", "<!--<script>", "\u202e\U0001f600 \u00e9",
           "'; document.title='owned'; '", "</title></svg></text>"]
write("hostile.onnx", "</title><script>document.title='owned'</script>", hostile, lambda i: [i - 1])
