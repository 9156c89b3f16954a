"""What PyTorch makes of an exported program: losses of some steps, gradients, parameters and buffers after one.

The judge is the program in double precision, everywhere in it: its own casts to single precision, which many models
have about normalizations and rotations, become casts to double precision.
"""
import copy

import torch
from torch import nn

import pt2_models

SGD = {"lr": 0.005, "momentum": 0.9}
ADAMW = {"lr": 1e-3, "weight_decay": 0.01}
STEPS = 3
OPTIMIZERS = {"sgd": lambda parameters: torch.optim.SGD(parameters, **SGD),
              "adamw": lambda parameters: torch.optim.AdamW(parameters, **ADAMW)}


def widen(module):
    """The module in double precision."""
    wide = {torch.float32: torch.float64}
    module = copy.deepcopy(module).double()
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
                setattr(part, name, value.double())
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for node in part.graph.nodes:
            node.args, node.kwargs = (torch.fx.node.map_aggregate(each, lambda a: wide.get(a, a) if isinstance(
                a, torch.dtype) else a) for each in (node.args, node.kwargs))
        part.recompile()
    return module


def nudge(module, seed):
    """The module, its weights rounded otherwise: each by up to half a unit of its last place."""
    generator = torch.Generator().manual_seed(seed)
    module = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1 + (torch.rand(parameter.shape, generator=generator) - 0.5) * 2.0 ** -23)
    return module


def loss_of(outputs, labels, loss, class_axis):
    first = pt2_models.first_output(outputs)
    if loss == "mean_squared_error":
        return nn.functional.mse_loss(first, labels.to(first.dtype))
    if class_axis == 1:
        return nn.functional.cross_entropy(first, labels)
    return nn.functional.cross_entropy(first.reshape(-1, first.shape[-1]), labels.reshape(-1))


def train(module, pose, optimizer, steps=STEPS):
    """(losses, gradients of the first step, state after it) of a copy of the module; no gradient is None."""
    module = copy.deepcopy(module)
    kind = next(p.dtype for p in module.parameters())
    inputs = {k: v.to(kind) if v.is_floating_point() else v for k, v in pose.inputs.items()}
    rule = OPTIMIZERS[optimizer](p for p in module.parameters() if p.requires_grad)
    losses, gradients, state = [], {}, {}
    standard = torch.get_default_dtype()
    torch.set_default_dtype(kind)
    try:
        for step in range(steps):
            rule.zero_grad()
            loss = loss_of(module(**inputs), pose.labels, pose.loss, pose.class_axis)
            loss.backward()
            if step == 0:
                gradients = {name: None if p.grad is None else p.grad.detach().clone()
                             for name, p in module.named_parameters()}
            rule.step()
            losses.append(loss.item())
            if step == 0:
                state = {name: value.detach().clone() for name, value in module.state_dict().items()}
    finally:
        torch.set_default_dtype(standard)
    return losses, gradients, state


def evaluate(model, pose):
    """The first output of the model in evaluation."""
    model = copy.deepcopy(model).eval()
    with torch.no_grad():
        return pt2_models.first_output(model(**pose.inputs)).detach()


class Wide(torch.overrides.TorchFunctionMode):
    """Casts to single precision become casts to double precision."""

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        arguments, keywords = torch.utils._pytree.tree_map(
            lambda each: torch.float64 if each is torch.float32 else each, (arguments, keywords or {}))
        return (torch.Tensor.double if function is torch.Tensor.float else function)(*arguments, **keywords)


def evaluate_wide(pose):
    """The first output of the model in evaluation, in double precision everywhere in it. In single where one of its
    operators has no other: the grouped products of experts."""
    inputs = {key: value.double() if value.is_floating_point() else value for key, value in pose.inputs.items()}
    wide = pt2_models.Pose(copy.deepcopy(pose.model).double(), inputs, None, "", 0)
    standard = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Wide():
            return evaluate(wide.model, wide)
    except RuntimeError as reason:
        if "BFloat16 or Float16 matrix" not in str(reason):
            raise
    finally:
        torch.set_default_dtype(standard)
    return evaluate(pose.model, pose)
