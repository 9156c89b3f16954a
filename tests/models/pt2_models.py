"""Every model that is exported as .pt2, at random rates of 0 or at its own, and its export."""
import copy
import dataclasses

import torch
from torch import nn

import pt2_other
import pt2_text
import pt2_vision

ZOOS = {**{name: pt2_vision for name in pt2_vision.FAMILIES}, **{name: pt2_text for name in pt2_text.MODELS},
        **{name: pt2_other for name in pt2_other.MODELS}}
REFUSED = {"perceptron_average"}  # by torch.export: a momentum of None reads the number of batches out of data
RATES = ("dropout", "drop", "drop_prob", "drop_rate", "attention_dropout", "activation_dropout", "hidden_dropout",
         "classifier_dropout", "dropout_p", "dropout_prob", "attn_drop", "layerdrop", "attention_probs_dropout_prob",
         "hidden_dropout_prob", "dropout_rate", "attn_dropout_rate", "activation_dropout_rate", "drop_path_rate",
         "proj_drop", "resid_pdrop", "embd_pdrop", "attn_pdrop", "final_dropout", "feat_proj_dropout")


@dataclasses.dataclass
class Pose:
    """A model, one batch of inputs by name, labels, and how its first output is judged."""
    model: nn.Module
    inputs: dict
    labels: torch.Tensor
    loss: str
    class_axis: int


def without_chance(model):
    """All random rates are 0: modules that drop, and rates that other modules keep as numbers."""
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
        for name in RATES:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
        config = getattr(module, "config", None)
        for name in dir(config) if config is not None else ():
            if ("drop" in name) and isinstance(getattr(config, name, None), float):
                setattr(config, name, 0.0)
    return model


def quieten(model, spread):
    """The outputs spread by at most 1: larger ones begin with losses that one step throws far."""
    heads = [m for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv1d, nn.Conv2d))]
    if spread > 1 and heads:
        for parameter in heads[-1].parameters():
            parameter.div_(spread)


def settle(model, inputs):
    """Weights and biases of batch normalization by chance, the biases about 2, and its running statistics those of
    the batch, so that a rounding decides about few ReLUs. See vision_models.settle."""
    generator = torch.Generator().manual_seed(7)
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Conv2d) and module.weight.requires_grad:
                nn.init.kaiming_normal_(module.weight, generator=generator)
        for norm in norms:
            norm.weight.copy_(0.5 + torch.rand(norm.weight.shape, generator=generator))
            norm.bias.copy_(2 + 0.3 * torch.randn(norm.bias.shape, generator=generator))
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.momentum = 1.0
        quieten(model, first_output(model.train()(**inputs)).std().item())
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
            norm.num_batches_tracked.zero_()


def build(name, rates=False):
    """The model in training mode; with `rates`, its random rates are those that it comes with."""
    pose = Pose(*ZOOS[name].build(name))
    quiet = without_chance(copy.deepcopy(pose.model))
    settle(quiet, pose.inputs)
    if rates:
        pose.model.load_state_dict(quiet.state_dict())
    else:
        pose.model = quiet
    pose.model.train()
    return pose


def first_output(outputs):
    return torch.utils._pytree.tree_leaves(outputs)[0]


def export(pose):
    """What torch.export makes of the model in training mode, for any number of examples."""
    shapes = {key: {0: torch.export.Dim("batch", min=1, max=4096)} for key in pose.inputs}
    return torch.export.export(pose.model, (), kwargs=dict(pose.inputs), dynamic_shapes=shapes)
