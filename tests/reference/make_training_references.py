#!/usr/bin/python3
"""Makes the training references: models exported from PyTorch and what training them must give.

  make_training_references.py            rewrites the stored references beside this script
  make_training_references.py --full DIR writes ResNet-18 at full width into DIR (make check-long)
  ... --only NAME                        one model
  ... --only NAME --add OPTIMIZER        one optimizer of a model that is there, beside the others;
                                         does without onnx

README.md describes the files. Needs Debian's python3-torch, python3-onnx and python3-numpy.
"""
import argparse
import copy
import os
import shutil

import numpy
import torch
from torch import nn

import reference_models as models

STEPS = 20
BATCH = 8
ROUNDING = 6e-8  # relative, of float32
TRIALS = 4
NOISE = 1e-5  # of the largest gradient of the model; below it Adam's direction is rounding noise

# name: (constructor, input shape, ONNX opset, distinct batches, seed). The seeds are chosen for low
# `sensitivity` (README.md): no ReLU or maximum on the way lies so near its edge that rounding alone
# decides it, which would make every float32 program right and different.
STORED = {
    "mlp": (lambda: models.Mlp([784, 32, 24, 10]), (1, 28, 28), 13, 5, 13),
    "lenet": (models.Lenet, (1, 28, 28), 11, 5, 12),
    "branching_cnn": (models.BranchingCnn, (3, 16, 16), 17, 5, 13),
    "batchnorm_cnn": (models.BatchnormCnn, (3, 16, 16), 13, 5, 8),
    "normed_mlp": (lambda: models.NormedMlp(16), (6, 16), 13, 5, 3),
    "normed_cnn": (models.NormedCnn, (3, 8, 8), 17, 5, 4),
    "recurrent": (models.Recurrent, (7, 5), 14, 5, 3),
    "resnet18": (lambda: models.Resnet18(4, 0.25), (3, 64, 64), 15, 2, 9),
}
# name: (the model whose parameters it has, input shape, distinct batches, optimizers). For devices that
# are slow, such as an emulated GPU; tensors after 20 steps are left out.
RESIZED = {"resnet18_32": ("resnet18", (3, 32, 32), 1, ("sgd", "adam"))}
FULL = {"resnet18_full": (lambda: models.Resnet18(64, 0.02), (3, 64, 64), 14, 2, 7)}

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True,
                                          weight_decay=5e-4),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3, betas=(0.9, 0.999), eps=1e-8),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, betas=(0.9, 0.999), eps=1e-8,
                                         weight_decay=0.05),
}


class Lion(torch.optim.Optimizer):
    """Chen and others, "Symbolic Discovery of Optimization Algorithms", algorithm 2."""

    def __init__(self, parameters, lr, betas, weight_decay):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = torch.sign(beta1 * m + (1 - beta1) * p.grad)
                p.sub_(group["lr"] * (update + group["weight_decay"] * p))
                m.mul_(beta2).add_((1 - beta2) * p.grad)


class Lamb(torch.optim.Optimizer):
    """You and others, "Large Batch Optimization for Deep Learning", algorithm 2, with phi(x) = x
    and, as their own program has it, no change of size where a norm is 0."""

    def __init__(self, parameters, lr, betas, eps, weight_decay):
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps,
                                      "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                m = state.setdefault("m", torch.zeros_like(p))
                v = state.setdefault("v", torch.zeros_like(p))
                state["step"] = step = state.get("step", 0) + 1
                m.mul_(beta1).add_((1 - beta1) * p.grad)
                v.mul_(beta2).add_((1 - beta2) * p.grad * p.grad)
                update = m / (1 - beta1 ** step) / ((v / (1 - beta2 ** step)).sqrt() + group["eps"])
                update += group["weight_decay"] * p
                sizes = p.norm(), update.norm()
                ratio = sizes[0] / sizes[1] if sizes[0] > 0 and sizes[1] > 0 else 1
                p.sub_(group["lr"] * ratio * update)


def groups(parameters, lr):
    """Biases have a fifth of the rate and no decay, the last weight four times the rate; the first
    bias stays."""
    parameters = list(parameters)
    return [{"params": parameters[3::2], "lr": lr / 5, "weight_decay": 0.0},
            {"params": parameters[4:5], "lr": lr * 4},
            {"params": parameters[0:3:2]}]


# of one model, beside those above: states of every combination but that of momentum and centered,
# which tests/graph/ops/training/optimizer_op_test.c has
MORE_OPTIMIZERS = {
    "mlp": {
        "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, alpha=0.9, weight_decay=5e-4,
                                                 momentum=0.9),
        "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=1e-3, alpha=0.9, centered=True),
        "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2, lr_decay=0.01, weight_decay=5e-4),
        "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0, rho=0.9, weight_decay=5e-4),
        "adamax": lambda p: torch.optim.Adamax(p, lr=2e-3, weight_decay=5e-4),
        "nadam": lambda p: torch.optim.NAdam(p, lr=2e-3, weight_decay=5e-4),
        "radam": lambda p: torch.optim.RAdam(p, lr=1e-3, weight_decay=0.05,
                                             decoupled_weight_decay=True),
        "lion": lambda p: Lion(p, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.05),
        "lamb": lambda p: Lamb(p, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01),
        "clip_value": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        "adamw_groups": lambda p: torch.optim.AdamW(groups(p, 1e-3), lr=1e-3, weight_decay=0.05),
        "adafactor": lambda p: torch.optim.Adafactor(p, lr=1e-2, eps=(1.1920928955078125e-07, 1e-3),
                                                     weight_decay=0.05),
        "average": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        "rmsprop_groups": lambda p: torch.optim.RMSprop(groups(p, 2e-4), lr=2e-4, alpha=0.9,
                                                        weight_decay=5e-4, momentum=0.9),
    },
}
for more in MORE_OPTIMIZERS.values():
    OPTIMIZERS.update(more)
CLIP_VALUES = {"clip_value": 0.01}  # of what size the elements of gradients are at most
AVERAGES = {"average": (0.9, 2)}  # decay, and steps before it begins; parameters_20 has it
# steps of these do not follow the size of a gradient
DIVIDING = ("ada", "rmsprop", "nadam", "radam", "lion", "lamb")


def make_data(shape, batches, seed):
    """Images with a pattern a class can be told by, in steps of 1/16 (exact in float32)."""
    random = numpy.random.RandomState(seed)
    labels = random.randint(0, 10, batches * BATCH).astype(numpy.int64)
    patterns = random.standard_normal((10,) + shape)
    images = 0.5 * patterns[labels] + random.standard_normal((len(labels),) + shape)
    return (numpy.round(images * 16) / 16).astype(numpy.float32), labels


class BiasedVariance:
    """Follows the running variance as ONNX defines it (population variance); torch's own uses the
    sample variance. Neither changes a loss in training."""

    def __init__(self, model):
        self.values = {}
        for name, module in model.named_modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                self.values[name + ".running_var"] = module.running_var.clone()
                module.register_forward_pre_hook(self._hook(name + ".running_var"))

    def _hook(self, name):
        def hook(module, arguments):
            if not module.training:
                return
            x = arguments[0].detach()
            axes = [axis for axis in range(x.dim()) if axis != 1]
            new = x.var(axes, unbiased=False)
            self.values[name] = (1 - module.momentum) * self.values[name] + module.momentum * new
        return hook


def flat_parts(model, biased):
    """[(name, kind, array)] in the order of index.txt: all parameters, then running statistics."""
    parts = [(n, "parameter", p) for n, p in model.named_parameters()]
    parts += [(n, "running", b) for n, b in model.named_buffers()
              if not n.endswith("num_batches_tracked")]
    parts += [(n, "running_biased", v) for n, v in biased.values.items()]
    return [(n, kind, t.detach().double().numpy().copy()) for n, kind, t in parts]


def train(initial, dtype, optimizer_name, inputs, labels):
    """Runs the 20 steps; returns losses[21] and {0, 1, 20: parts}, and the gradients of step 1."""
    model = copy.deepcopy(initial).to(dtype)
    model.train()
    biased = BiasedVariance(model)
    optimizer = OPTIMIZERS[optimizer_name](model.parameters())
    averaged = None
    if optimizer_name in AVERAGES:
        decay, begin = AVERAGES[optimizer_name]
        averaged = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(decay))
    batches = len(labels) // BATCH
    losses, states, gradients = [], {0: flat_parts(model, biased)}, None
    for step in range(STEPS + 1):
        rows = slice(step % batches * BATCH, (step % batches + 1) * BATCH)
        output = model(torch.from_numpy(inputs[rows]).to(dtype))
        loss = nn.functional.cross_entropy(output, torch.from_numpy(labels[rows]))
        losses.append(loss.item())
        if step == STEPS:
            break  # the loss after the last step; its pass must not move running statistics
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradients = [p.grad.double().numpy().copy() for p in model.parameters()]
            first_output = output.detach().double().numpy()
        if optimizer_name in CLIP_VALUES:
            nn.utils.clip_grad_value_(model.parameters(), CLIP_VALUES[optimizer_name])
        optimizer.step()
        if averaged is not None and step + 1 > begin:
            averaged.update_parameters(model)
        if step + 1 in (1, STEPS):
            kept = averaged.module if averaged is not None and step + 1 > begin else model
            states[step + 1] = flat_parts(kept, biased)
    return losses, states, gradients, first_output


def relative(a, b):
    """||a - b|| / ||b||"""
    size = numpy.linalg.norm(b)
    return numpy.linalg.norm(a - b) / size if size else numpy.linalg.norm(a)


def flatten(arrays):
    return numpy.concatenate([a.ravel() for a in arrays]).astype(numpy.float32)


def write_table(path, header, rows):
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join(header) + "\n")
        for row in rows:
            texts = (f"{v:.17g}" if isinstance(v, float) else str(v) for v in row)
            file.write(",".join(texts) + "\n")


def export(model, shape, opset, path):
    """As users export for training: nothing folded, parameters under their own names."""
    import onnx
    import onnx.numpy_helper
    model = copy.deepcopy(model).train()  # tracing runs the model and moves running statistics;
    state = copy.deepcopy(model.state_dict())  # they are put back below
    torch.onnx.export(model, torch.zeros((BATCH,) + shape), path, opset_version=opset,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["input"], output_names=["logits"],
                      dynamic_axes={"input": {0: "batch"}, "logits": {0: "batch"}})
    exported = onnx.load(path)
    initializers = {i.name: i for i in exported.graph.initializer}
    for name, value in state.items():
        if name.endswith("running_mean") or name.endswith("running_var"):
            initializers[name].CopyFrom(onnx.numpy_helper.from_array(value.numpy(), name))
        elif not name.endswith("num_batches_tracked"):
            assert numpy.array_equal(onnx.numpy_helper.to_array(initializers[name]), value), name
    onnx.checker.check_model(exported, full_check=True)
    onnx.save(exported, path)


def perturbed_losses(initial, optimizer_name, inputs, labels, trials):
    """Losses in float32 from parameters that differ by float32's rounding, one row a trial."""
    rows = []
    for trial in range(trials):
        generator = torch.Generator().manual_seed(trial)
        model = copy.deepcopy(initial)
        with torch.no_grad():
            for p in model.parameters():
                p *= 1 + ROUNDING * torch.randn(p.shape, generator=generator)
        rows.append(train(model, torch.float32, optimizer_name, inputs, labels)[0])
    return numpy.array(rows)


def write_optimizer(folder, name, runs, gradients, keeps_last):
    """One folder for one optimizer: parameters, losses and float32's own errors."""
    wide, single, perturbed = runs
    os.makedirs(folder)
    keeps_last = keeps_last and name in ("sgd", "adam")
    stored = (1, STEPS) if keeps_last else (STEPS,) if name in AVERAGES else (1,)
    for step in stored:
        parts = wide[1][step]
        numpy.save(f"{folder}/parameters_{step}.npy", flatten(p[2] for p in parts))
    sensitivity = (numpy.abs(perturbed - wide[0]) / numpy.abs(wide[0])).max(0)
    rows = [(i, a, b, abs(b - a) / abs(a), float(c))
            for i, (a, b, c) in enumerate(zip(wide[0], single[0], sensitivity))]
    write_table(f"{folder}/losses.csv",
                ("updates", "float64", "float32", "relative_error", "sensitivity"), rows)

    largest = max(numpy.abs(g).max() for g in gradients)
    rows = []
    for i, (part, kind, _) in enumerate(wide[1][1]):
        kept = numpy.ones(wide[1][1][i][2].shape, bool)
        if kind == "parameter" and name.startswith(DIVIDING):
            kept = numpy.abs(gradients[i]) >= NOISE * largest
        row = [part, kind]
        for step in (1, STEPS):
            a, b = single[1][step][i][2], wide[1][step][i][2]
            row += [float(relative(a, b)), float(relative(a[kept], b[kept]))]
        rows.append(row + [int(kept.size - kept.sum())])
    write_table(f"{folder}/errors.csv", ("name", "kind", "error_1", "error_1_kept", "error_20",
                                         "error_20_kept", "left_out"), rows)
    return (max(float(r[3]) for r in rows), max(float(r[5]) for r in rows),
            sum(r[6] for r in rows), sensitivity.max())


def write_index(path, parts):
    with open(path, "w", encoding="ascii") as file:
        offset = 0
        for name, kind, value in parts:
            file.write(" ".join([name, kind, str(offset)] + [str(d) for d in value.shape]) + "\n")
            offset += value.size


def make_optimizer(folder, name, model, data, optimizer, keeps_last=True):
    """The folder of one optimizer; returns the run in float64."""
    wide = train(model, torch.float64, optimizer, *data)
    single = train(model, torch.float32, optimizer, *data)
    perturbed = perturbed_losses(model, optimizer, *data, TRIALS)
    worst = write_optimizer(f"{folder}/{optimizer}", optimizer, (wide, single, perturbed), wide[2],
                            keeps_last)
    print(f"{name} {optimizer}: loss {wide[0][0]:.6f} -> {wide[0][-1]:.6f} "
          f"(float32 differs by {abs(single[0][-1] / wide[0][-1] - 1):.1e}), worst tensor "
          f"{worst[0]:.1e} after 1, {worst[1]:.1e} after {STEPS}, left out {worst[2]}, "
          f"sensitivity {worst[3]:.1e}")
    return wide


def make(folder, name, specification, optimizers):
    constructor, shape, opset, batches, seed = specification
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    torch.manual_seed(seed)
    model = constructor()
    export(model, shape, opset, f"{folder}/model.onnx")
    make_rest(folder, name, model, make_data(shape, batches, seed), optimizers)


def make_rest(folder, name, model, data, optimizers, keeps_last=True):
    numpy.save(f"{folder}/inputs.npy", data[0])
    numpy.save(f"{folder}/labels.npy", data[1])
    for optimizer in optimizers:
        wide = make_optimizer(folder, name, model, data, optimizer, keeps_last)
    write_index(f"{folder}/index.txt", wide[1][1])
    numpy.save(f"{folder}/gradient_1.npy", flatten(wide[2]))
    numpy.save(f"{folder}/outputs_1.npy", wide[3].astype(numpy.float32))


def make_resized(target, name):
    """The file of a model that is there, for inputs of another size."""
    import onnx
    of, shape, batches, optimizers = RESIZED[name]
    constructor, seed = STORED[of][0], STORED[of][4]
    shutil.rmtree(f"{target}/{name}", ignore_errors=True)
    os.makedirs(f"{target}/{name}")
    torch.manual_seed(seed)
    model = constructor()
    exported = onnx.load(f"{target}/{of}/model.onnx")
    for place, size in zip(exported.graph.input[0].type.tensor_type.shape.dim[1:], shape):
        place.dim_value = size
    del exported.graph.value_info[:]
    onnx.save(exported, f"{target}/{name}/model.onnx")
    make_rest(f"{target}/{name}", name, model, make_data(shape, batches, seed), optimizers, False)


def add(folder, name, specification, optimizer):
    """The gradients say whether the model is made as it was stored, by whichever PyTorch."""
    constructor, shape, _, batches, seed = specification
    torch.manual_seed(seed)
    model = constructor()
    shutil.rmtree(f"{folder}/{optimizer}", ignore_errors=True)
    wide = make_optimizer(folder, name, model, make_data(shape, batches, seed), optimizer)
    stored = numpy.load(f"{folder}/gradient_1.npy")
    assert numpy.allclose(flatten(wide[2]), stored, rtol=1e-6, atol=1e-9), "another model"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--full", metavar="DIR", help="write the large references there")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--add", metavar="OPTIMIZER")
    options = parser.parse_args()
    torch.set_num_threads(1)  # one summation order
    table, target, optimizers = STORED, os.path.dirname(os.path.abspath(__file__)), OPTIMIZERS
    if options.full:
        table, target, optimizers = FULL, options.full, ("sgd", "adam")
    special = {name for more in MORE_OPTIMIZERS.values() for name in more}
    for name, specification in table.items():
        chosen = [o for o in optimizers if o not in special or o in MORE_OPTIMIZERS.get(name, {})]
        if options.add and options.only == name:
            add(f"{target}/{name}", name, specification, options.add)
        elif options.only in (None, name):
            make(f"{target}/{name}", name, specification, chosen)
    for name in RESIZED if not options.full else ():
        if options.only in (None, name):
            make_resized(target, name)


if __name__ == "__main__":
    main()
