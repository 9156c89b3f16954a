#!/usr/bin/env python3
"""Writes what tests/scheduler/loss_training_test.c compares with: a small model with several outputs, data, and what
PyTorch makes of each case of losses in a few steps.

Needs PyTorch, NumPy and onnx. Run in this folder.

cases.txt has a line a case: a name, what stands in the job's `train`, and what its data has as `labels` (and `weights`),
with tabs between them; @ is this folder. Row i of expected.npy has for case i
the losses of STEPS steps, the loss of all examples after them and how many of its targets are right and count (-1: no
classes), and all parameters."""
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F

EXAMPLES, BATCH, STEPS, CLASSES, SIDE, BOX = 10, 4, 3, 5, 4, 6
RATE = 0.2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 6, 3, padding=1)
        self.score = nn.Conv2d(6, CLASSES, 1)
        self.box = nn.Linear(6, BOX)

    def forward(self, x):
        seen = torch.relu(self.first(x))
        logits = self.score(seen)
        boxes = self.box(seen.mean((2, 3)))
        return {
            "logits": logits,
            "last": logits.permute(0, 2, 3, 1),
            "middle": logits.permute(0, 2, 1, 3),
            "logs": F.log_softmax(logits, 1),
            "boxes": boxes,
            "chances": torch.sigmoid(boxes),
            "shares": F.log_softmax(boxes, 1),
        }


def write_model(net):
    weights = [numpy_helper.from_array(value.detach().numpy(), name) for name, value in net.state_dict().items()]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "first.weight", "first.bias"], ["convolved"], "first", pads=[1, 1, 1, 1]),
        node("Relu", ["convolved"], ["seen"], "relu"),
        node("Conv", ["seen", "score.weight", "score.bias"], ["logits"], "score"),
        node("GlobalAveragePool", ["seen"], ["pooled"], "pool"),
        node("Flatten", ["pooled"], ["flat"], "flatten"),
        node("Gemm", ["flat", "box.weight", "box.bias"], ["boxes"], "box", transB=1),
        node("Transpose", ["logits"], ["last"], "to_last", perm=[0, 2, 3, 1]),
        node("Transpose", ["logits"], ["middle"], "to_middle", perm=[0, 2, 1, 3]),
        node("LogSoftmax", ["logits"], ["logs"], "logs", axis=1),
        node("Sigmoid", ["boxes"], ["chances"], "chances"),
        node("LogSoftmax", ["boxes"], ["shares"], "shares", axis=1),
    ]
    shapes = {
        "logits": ["batch", CLASSES, SIDE, SIDE],
        "last": ["batch", SIDE, SIDE, CLASSES],
        "middle": ["batch", SIDE, CLASSES, SIDE],
        "logs": ["batch", CLASSES, SIDE, SIDE],
        "boxes": ["batch", BOX],
        "chances": ["batch", BOX],
        "shares": ["batch", BOX],
    }
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2, SIDE, SIDE])]
    graph = helper.make_graph(nodes, "losses", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, "model.onnx")


def make_data():
    random = np.random.default_rng(14)
    x = random.normal(size=(EXAMPLES, 2, SIDE, SIDE)).astype(np.float32)
    masks = random.integers(0, CLASSES, size=(EXAMPLES, SIDE, SIDE))
    some = masks.copy()  # unevenly many are ignored: all of one example, few of another
    for e, share in enumerate([0.9, 0.1, 0.5, 1.0, 0.0, 0.7, 0.2, 0.95, 0.6, 0.3]):
        some[e][random.random((SIDE, SIDE)) < share] = 255
    data = {
        "x": x,
        "masks": masks.astype(np.int64),
        "some": some.astype(np.uint8),
        "boxes": random.normal(scale=1.5, size=(EXAMPLES, BOX)).astype(np.float32),
        "chances": random.random((EXAMPLES, BOX)).astype(np.float32),
        "shares": random.dirichlet(np.full(BOX, 0.5), EXAMPLES).astype(np.float32),
        "weights": np.array([0.5, 2, 0, 1, 3.25], np.float32),
    }
    data["shares"][0] = np.eye(BOX, dtype=np.float32)[2]  # zeros among the probabilities
    data["rows"] = np.array([1, 0, 2.5, 0.25, 0.5, 4, 0, 1.75, 3, 0.1], np.float32)  # of examples
    data["likely"] = random.dirichlet(np.ones(CLASSES), (EXAMPLES, SIDE, SIDE)).transpose(0, 3, 1, 2).astype(np.float32)
    for name, values in data.items():
        np.save(name + ".npy", values)
    return {name: torch.from_numpy(values) for name, values in data.items()}


def cross_entropy(output, labels, axis=1, weights=None, **options):
    def compute(out, data):
        weight = None if weights is None else data["weights"]
        return F.cross_entropy(out[output].movedim(axis, 1), data[labels].long(), weight=weight, **options)

    return compute


def log_likelihood(labels, weights=None, **options):
    def compute(out, data):
        weight = None if weights is None else data["weights"]
        return F.nll_loss(out["logs"], data[labels].long(), weight=weight, **options)

    return compute


def of(function, output, labels, **options):
    return lambda out, data: function(out[output], data[labels], **options)


def by_rows(each, per_row=None):
    """Each example counts as `rows` says: (w * loss).sum() / w.sum(). `each` has a loss for each target or number;
    `per_row`, what these count by themselves, as classes do."""
    def compute(out, data):
        losses, rows = each(out, data).flatten(1), data["rows"]
        if per_row is None:
            return (rows * losses.mean(1)).sum() / rows.sum()
        return (rows[:, None] * losses).sum() / (rows[:, None] * per_row(data).flatten(1)).sum()

    return compute


def by_rows_summed(each):
    def compute(out, data):
        return (data["rows"] * each(out, data).flatten(1).sum(1)).sum() / data["rows"].sum()

    return compute


def both(*parts):
    return lambda out, data: sum(weight * part(out, data) for weight, part in parts)


CE, WEIGHTED = "softmax_cross_entropy", "class_weights: @weights.npy"
NUMBERS = "class_weights: [0.5, 2, 0, 1, 3.25]"
# name, keys of `train`, loss in PyTorch, output and labels of right answers, label that is ignored
CASES = [
    ("plain", f"loss: {CE}, loss_output: last, labels: masks", cross_entropy("last", "masks", -1), "masks", None),
    ("axis_1", f"loss: {CE}, loss_output: logits, class_axis: 1, labels: masks", cross_entropy("logits", "masks"),
     "masks", None),
    ("axis_2", f"loss: {CE}, loss_output: middle, class_axis: -2, labels: masks",
     lambda out, data: F.cross_entropy(out["middle"].transpose(1, 2), data["masks"]), "masks", None),
    ("ignored", f"loss: {CE}, loss_output: logits, class_axis: 1, ignore_index: 255, labels: some",
     cross_entropy("logits", "some", ignore_index=255), "some", 255),
    ("ignored_class", f"loss: {CE}, loss_output: last, ignore_index: 3, labels: masks",
     cross_entropy("last", "masks", -1, ignore_index=3), "masks", 3),
    ("weighted", f"loss: {CE}, loss_output: logits, class_axis: 1, {WEIGHTED}, labels: masks",
     cross_entropy("logits", "masks", weights=True), "masks", None),
    ("smoothed", f"loss: {CE}, loss_output: last, label_smoothing: 0.2, labels: masks",
     cross_entropy("last", "masks", -1, label_smoothing=0.2), "masks", None),
    ("smoothed_wholly", f"loss: {CE}, loss_output: last, label_smoothing: 1, labels: masks",
     cross_entropy("last", "masks", -1, label_smoothing=1.0), "masks", None),
    ("everything", f"loss: {CE}, loss_output: logits, class_axis: 1, ignore_index: 255, {NUMBERS}, "
     "label_smoothing: 0.1, labels: some",
     cross_entropy("logits", "some", weights=True, ignore_index=255, label_smoothing=0.1), "some", 255),
    ("everything_middle", f"loss: {CE}, loss_output: middle, class_axis: 2, ignore_index: 255, {NUMBERS}, "
     "label_smoothing: 0.1, labels: some",
     cross_entropy("middle", "some", 2, weights=True, ignore_index=255, label_smoothing=0.1), "some", 255),
    ("likelihood", "loss: negative_log_likelihood, loss_output: logs, class_axis: 1, labels: masks",
     log_likelihood("masks"), "masks", None),
    ("likelihood_weighted", "loss: negative_log_likelihood, loss_output: logs, class_axis: 1, ignore_index: 255, "
     f"{WEIGHTED}, labels: some", log_likelihood("some", weights=True, ignore_index=255), "some", 255),
    ("probable", f"loss: {CE}, loss_output: boxes, probabilities: true, labels: shares",
     of(F.cross_entropy, "boxes", "shares"), None, None),
    ("probable_smoothed", f"loss: {CE}, loss_output: boxes, probabilities: true, label_smoothing: 0.2, "
     "class_weights: [0.5, 2, 0, 1, 3.25, 1], labels: shares",
     of(F.cross_entropy, "boxes", "shares", label_smoothing=0.2,
        weight=torch.tensor([0.5, 2, 0, 1, 3.25, 1])), None, None),
    ("probable_axis", f"loss: {CE}, loss_output: logits, class_axis: 1, probabilities: true, {NUMBERS}, "
     "labels: likely",
     lambda out, data: F.cross_entropy(out["logits"], data["likely"], weight=data["weights"]), None, None),
    ("mse", "loss: mean_squared_error, loss_output: boxes, labels: boxes", of(F.mse_loss, "boxes", "boxes"), None, None),
    ("l1", "loss: l1, loss_output: boxes, labels: boxes", of(F.l1_loss, "boxes", "boxes"), None, None),
    ("smooth_l1", "loss: smooth_l1, loss_output: boxes, labels: boxes", of(F.smooth_l1_loss, "boxes", "boxes"), None,
     None),
    ("smooth_l1_beta", "loss: smooth_l1, loss_output: boxes, beta: 0.25, labels: boxes",
     of(F.smooth_l1_loss, "boxes", "boxes", beta=0.25), None, None),
    ("smooth_l1_sharp", "loss: smooth_l1, loss_output: boxes, beta: 0, labels: boxes",
     of(F.smooth_l1_loss, "boxes", "boxes", beta=0.0), None, None),
    ("huber", "loss: huber, loss_output: boxes, delta: 0.7, labels: boxes", of(F.huber_loss, "boxes", "boxes", delta=0.7),
     None, None),
    ("divergence", "loss: kl_divergence, loss_output: shares, labels: shares",
     of(F.kl_div, "shares", "shares", reduction="batchmean"), None, None),
    ("binary", "loss: binary_cross_entropy, loss_output: chances, labels: chances",
     of(F.binary_cross_entropy, "chances", "chances"), None, None),
    ("binary_logits", "loss: binary_cross_entropy_with_logits, loss_output: boxes, labels: chances",
     of(F.binary_cross_entropy_with_logits, "boxes", "chances"), None, None),
    ("two", f"losses: [{{output: logits, labels: some, kind: {CE}, class_axis: 1, ignore_index: 255}}, "
     "{output: boxes, kind: smooth_l1, weight: 0.5}], labels: {some: @some.npy, boxes: @boxes.npy}",
     both((1, cross_entropy("logits", "some", ignore_index=255)), (0.5, of(F.smooth_l1_loss, "boxes", "boxes"))),
     "some", 255),
    ("four", "losses: [{output: boxes, kind: huber, delta: 2, weight: 0.25}, "
     f"{{output: logits, labels: some, kind: {CE}, class_axis: 1, ignore_index: 255, {WEIGHTED}, weight: 2}}, "
     f"{{output: last, labels: masks, kind: {CE}, label_smoothing: 0.1, weight: 0.4}}, "
     "{output: shares, labels: shares, kind: kl_divergence}], "
     "labels: {some: @some.npy, masks: @masks.npy, boxes: @boxes.npy, shares: @shares.npy}",
     both((0.25, of(F.huber_loss, "boxes", "boxes", delta=2.0)),
          (2, cross_entropy("logits", "some", weights=True, ignore_index=255)),
          (0.4, cross_entropy("last", "masks", -1, label_smoothing=0.1)),
          (1, of(F.kl_div, "shares", "shares", reduction="batchmean"))), "some", 255),
    ("rows", f"loss: {CE}, loss_output: last, labels: masks, weights: rows",
     by_rows(cross_entropy("last", "masks", -1, reduction="none")), "masks", None),
    ("rows_everything", f"loss: {CE}, loss_output: middle, class_axis: 2, ignore_index: 255, {NUMBERS}, "
     "label_smoothing: 0.1, labels: some, weights: rows",
     by_rows(cross_entropy("middle", "some", 2, weights=True, ignore_index=255, label_smoothing=0.1,
                           reduction="none"),
             lambda data: torch.cat([data["weights"], torch.zeros(251)])[data["some"].long()]), "some", 255),
    ("rows_likelihood", "loss: negative_log_likelihood, loss_output: logs, class_axis: 1, labels: masks, "
     "weights: rows", by_rows(log_likelihood("masks", reduction="none")), "masks", None),
    ("rows_probable", f"loss: {CE}, loss_output: logits, class_axis: 1, probabilities: true, {NUMBERS}, "
     "labels: likely, weights: rows",
     by_rows(lambda out, data: F.cross_entropy(out["logits"], data["likely"], weight=data["weights"],
                                               reduction="none")), None, None),
    *[(f"rows_{name}", f"loss: {loss}, labels: {labels}, weights: rows",
       by_rows(of(function, loss.split("loss_output: ")[1].split(",")[0], labels, reduction="none", **options)),
       None, None) for name, loss, labels, function, options in (
           ("mse", "mean_squared_error, loss_output: boxes", "boxes", F.mse_loss, {}),
           ("l1", "l1, loss_output: boxes", "boxes", F.l1_loss, {}),
           ("smooth_l1", "smooth_l1, loss_output: boxes, beta: 0.25", "boxes", F.smooth_l1_loss, {"beta": 0.25}),
           ("sharp", "smooth_l1, loss_output: boxes, beta: 0", "boxes", F.smooth_l1_loss, {"beta": 0.0}),
           ("huber", "huber, loss_output: boxes, delta: 0.7", "boxes", F.huber_loss, {"delta": 0.7}),
           ("binary", "binary_cross_entropy, loss_output: chances", "chances", F.binary_cross_entropy, {}),
           ("binary_logits", "binary_cross_entropy_with_logits, loss_output: boxes", "chances",
            F.binary_cross_entropy_with_logits, {}))],
    ("rows_divergence", "loss: kl_divergence, loss_output: shares, labels: shares, weights: rows",
     by_rows_summed(of(F.kl_div, "shares", "shares", reduction="none")), None, None),
    ("rows_two", f"losses: [{{output: logits, labels: masks, kind: {CE}, class_axis: 1}}, "
     "{output: boxes, kind: smooth_l1, weight: 0.5}], labels: {masks: @masks.npy, boxes: @boxes.npy}, weights: rows",
     both((1, by_rows(cross_entropy("logits", "masks", reduction="none"))),
          (0.5, by_rows(of(F.smooth_l1_loss, "boxes", "boxes", reduction="none")))), "masks", None),
]


def run_case(start, data, compute, labels, ignored):
    net = Net()
    net.load_state_dict(start)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    losses = []
    for step in range(STEPS):
        part = slice(step * BATCH, min((step + 1) * BATCH, EXAMPLES))
        cut = {name: values if name == "weights" else values[part] for name, values in data.items()}
        loss = compute(net(cut["x"]), cut)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        out = net(data["x"])
        after = compute(out, data).item()
        right = count = -1
        if labels is not None:
            counts = data[labels].long() != (-1 if ignored is None else ignored)
            right = ((out["logits"].argmax(1) == data[labels].long()) & counts).sum().item()
            count = counts.sum().item()
    parameters = torch.cat([p.detach().flatten() for p in net.parameters()])
    return losses + [after, right, count] + parameters.tolist()


def main():
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(14)
    torch.set_num_threads(1)
    net = Net()
    write_model(net)
    data = make_data()
    rows = [run_case(net.state_dict(), data, compute, labels, ignored) for _, _, compute, labels, ignored in CASES]
    np.save("expected.npy", np.array(rows, np.float32))
    with open("cases.txt", "w") as file:
        for name, text, *_ in CASES:
            train, labels = text.rsplit(", labels: ", 1)
            labels, *weights = labels.split(", weights: ")
            labels = labels if labels.startswith("{") else f"@{labels}.npy"
            labels += "".join(f", weights: @{name}.npy" for name in weights)
            file.write(f"{name}\t{train}\t{labels}\n")


main()
