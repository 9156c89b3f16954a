#!/usr/bin/env python3
"""Makes operators.zip, of NAME.pt2 and NAME.expected: calls of single operators, and what PyTorch makes of them.

Needs PyTorch 2.15. Equal runs write equal numbers.

A module has parameters and buffers under short names, and an output for each call. NAME.pt2 is its export, as
PyTorch saves it, but for lines of Python and sample inputs, which are left out to keep it small. NAME.expected is
records: a name ending in a zero byte, the count of numbers as 4 bytes, and the numbers as float32. Names are
    OUTPUT             an output
    OUTPUT|PARAMETER   the gradient of the sum of the output's elements, element k times weight(k), for a parameter
    =BUFFER            what a buffer holds afterwards
    <INPUT             an input that is fed
"""
import io
import json
import os
import struct
import zipfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
ENTRIES = {}
DATE = (1980, 1, 1, 0, 0, 0)


def weights(count):
    return torch.tensor([((k * 7 + 3) % 11 - 5) / 4 for k in range(count)])


class Cases(nn.Module):
    """`tensors`: floating ones are parameters, others buffers. `calls`: name to a function of the module."""

    def __init__(self, tensors, calls, modules=None):
        super().__init__()
        for name, tensor in tensors.items():
            if tensor.is_floating_point():
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)
        for name, module in (modules or {}).items():
            self.add_module(name, module)
        self.calls = calls

    def forward(self, **inputs):
        outputs = {}
        for name, call in self.calls.items():
            made = call(self, **inputs)
            if isinstance(made, torch.Tensor):
                outputs[name] = made
            else:
                outputs.update({f"{name}.{i}": part for i, part in enumerate(made)})
        return outputs


def strip(archive):
    """Leaves out lines of Python and sample inputs. The dates of all entries are equal, too."""
    stripped = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(stripped, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            name = info.filename.split("/", 1)[1]
            data = old.read(info.filename)
            if "sample_inputs" in name:
                continue
            if name.endswith("model.json"):
                model = json.loads(data)
                for node in model["graph_module"]["graph"]["nodes"]:
                    node["metadata"] = {}
                data = json.dumps(model).encode()
            new.writestr(zipfile.ZipInfo("cases/" + name, DATE), data)
    return stripped.getvalue()


def record(file, name, tensor):
    numbers = tensor.detach().to(torch.float32).reshape(-1).contiguous().numpy()
    file.write(name.encode() + b"\0" + struct.pack("<I", numbers.size) + numbers.tobytes())


def save(name, module, inputs=None, shapes=None, other_inputs=None, is_double=False):
    """`other_inputs`: of other sizes than the export was made with; the references are theirs. `is_double`: they are
    computed in float64, where PyTorch's own rounding is more than 1e-6."""
    module.train()
    inputs = inputs or {}
    state = {key: value.clone() for key, value in module.state_dict().items()}
    exported = torch.export.export(module, (), inputs, dynamic_shapes=shapes)
    archive = io.BytesIO()
    torch.export.save(exported, archive)
    archive.seek(0)
    ENTRIES[name + ".pt2"] = strip(archive)
    module.load_state_dict(state)
    if is_double:
        module.double()
    parameters = dict(module.named_parameters())
    fed = other_inputs or inputs
    file = io.BytesIO()
    for key, tensor in fed.items():
        record(file, "<" + key, tensor)
    outputs = module(**fed)
    for key, output in outputs.items():
        assert torch.isfinite(output.to(torch.float32)).all(), key
        record(file, key, output)
        if not output.requires_grad:
            continue
        loss = (output.reshape(-1) * weights(output.numel()).to(output.dtype)).sum()
        gradients = torch.autograd.grad(loss, list(parameters.values()), retain_graph=True, allow_unused=True)
        for parameter, gradient in zip(parameters, gradients):
            if gradient is not None:
                assert torch.isfinite(gradient).all(), (key, parameter)
                record(file, f"{key}|{parameter}", gradient)
    for key, buffer in module.named_buffers():
        if not torch.equal(buffer, state[key]):
            record(file, "=" + key, buffer)
    ENTRIES[name + ".expected"] = file.getvalue()
    print(f"{name}: {len(outputs)} outputs")


def draw(seed, *shape, low=-2.0, high=2.0):
    return torch.from_numpy(np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32))


def integers(seed, *shape, low=0, high=5):
    return torch.from_numpy(np.random.default_rng(seed).integers(low, high, shape))


FAMILIES = {}


def family(function):
    FAMILIES[function.__name__] = function
    return function


@family
def elementwise():
    tensors = {
        "x": draw(1, 2, 5),
        "y": draw(2, 5),
        "p": draw(3, 2, 5, low=0.2, high=3),
        "u": draw(4, 2, 5, low=-0.9, high=0.9),
        "z": torch.tensor([0.0, 1.0, -1.0, 2.5, -3.5]),  # limits and halves
        "i": integers(5, 2, 5, low=-7, high=8),
        "j": torch.tensor([3, -2, 5, -1, 2]),
        "b": integers(6, 2, 5, high=2).bool(),
    }
    one = lambda name, key="x": lambda m: getattr(torch, name)(getattr(m, key))
    calls = {f"{name}_{key}": one(name, key) for key, names in {
        "x": "neg abs exp sin cos tanh sigmoid erf sign floor ceil round trunc frac square exp2 expm1 atan sinh cosh asinh "
             "erfc isfinite isnan",
        "p": "log sqrt rsqrt reciprocal log2 log10 log1p",
        "u": "tan asin acos atanh log1p expm1",
        "z": "round sign abs nan_to_num",
        "i": "neg abs sign floor exp bitwise_not",
        "b": "logical_not bitwise_not",
    }.items() for name in names.split()}
    calls |= {
        "acosh": lambda m: torch.acosh(m.p + 1),
        "add": lambda m: m.x + m.y,
        "add_alpha": lambda m: torch.add(m.x, m.y, alpha=-0.5),
        "add_number": lambda m: m.x + 3,
        "add_integers": lambda m: m.i + m.j,
        "add_mixed": lambda m: m.x + m.j,
        "add_half": lambda m: m.i + 0.5,
        "add_bools": lambda m: m.b + m.b,
        "sub": lambda m: m.x - m.y,
        "sub_alpha": lambda m: torch.sub(m.x, m.y, alpha=2),
        "rsub": lambda m: 2 - m.x,
        "rsub_alpha": lambda m: torch.rsub(m.x, m.y, alpha=3),
        "mul": lambda m: m.x * m.y,
        "mul_mask": lambda m: m.x * m.b,
        "mul_bools": lambda m: m.b * m.b,
        "div": lambda m: m.x / m.p,
        "div_integers": lambda m: m.i / m.j,
        "div_under": lambda m: 2 / m.p,
        "div_floor": lambda m: torch.div(m.x, m.y, rounding_mode="floor"),
        "div_trunc": lambda m: torch.div(m.x, m.y, rounding_mode="trunc"),
        "div_floor_integers": lambda m: torch.div(m.i, m.j, rounding_mode="floor"),
        "div_trunc_integers": lambda m: torch.div(m.i, m.j, rounding_mode="trunc"),
        "floor_divide": lambda m: m.i // 3,
        "floor_divide_float": lambda m: m.x.detach() // 0.3,
        "remainder": lambda m: torch.remainder(m.x, m.y),
        "remainder_number": lambda m: m.x % 0.7,
        "remainder_integers": lambda m: m.i % m.j,
        "fmod": lambda m: torch.fmod(m.x, m.y),
        "fmod_integers": lambda m: torch.fmod(m.i, 3),
        "pow": lambda m: m.p ** m.y,
        "pow_square": lambda m: m.x ** 2,
        "pow_cube": lambda m: m.x ** 3,
        "pow_root": lambda m: m.p ** -0.5,
        "pow_of_two": lambda m: 2 ** m.x,
        "pow_integers": lambda m: m.j ** 2,
        "logaddexp": lambda m: torch.logaddexp(m.x, m.y),
        "hypot": lambda m: torch.hypot(m.x, m.y),
        "logit": lambda m: torch.logit((m.u + 1) / 2),
        "logit_eps": lambda m: torch.logit((m.u + 1) / 2, eps=0.2),
        "xlogy": lambda m: torch.xlogy(m.z, m.p),
        "maximum": lambda m: torch.maximum(m.x, m.y),
        "minimum_equal": lambda m: torch.minimum(m.z, m.z.relu()),
        "max_other": lambda m: torch.max(m.i, m.j),
        "clamp": lambda m: m.z.clamp(-1, 1),
        "clamp_low": lambda m: m.x.clamp(min=0.25),
        "clamp_high": lambda m: m.x.clamp(max=0.25),
        "clamp_min": lambda m: m.x.clamp_min(-0.3),
        "clamp_tensors": lambda m: torch.clamp(m.x, m.y - 0.5, m.y + 0.5),
        "clamp_integers": lambda m: m.i.clamp(-2, 3),
        "where": lambda m: torch.where(m.b, m.x, m.y),
        "where_number": lambda m: torch.where(m.x > 0, m.x, 0.5),
        "where_other": lambda m: torch.where(m.b, 0.5, m.x),
        "masked_fill": lambda m: m.x.masked_fill(m.b, -1e4),
        "masked_fill_tensor": lambda m: m.x.masked_fill(m.b, m.y[0]),
        "addcmul": lambda m: torch.addcmul(m.x, m.y, m.p, value=0.3),
        "addcdiv": lambda m: torch.addcdiv(m.x, m.y, m.p),
        "lerp": lambda m: torch.lerp(m.x, m.y, 0.3),
        "lerp_tensor": lambda m: torch.lerp(m.x, m.y, m.p),
        "equal": lambda m: m.z == 1,
        "not_equal": lambda m: m.i != m.j,
        "less": lambda m: m.x < m.y,
        "less_or_equal": lambda m: m.i <= 2.5,
        "greater": lambda m: m.b > m.x,
        "greater_or_equal": lambda m: m.z >= 0,
        "logical_and": lambda m: torch.logical_and(m.b, m.i),
        "and": lambda m: m.b & (m.x > 0),
        "or": lambda m: m.b | (m.x > 0),
        "xor": lambda m: m.b ^ (m.x > 0),
        "logical_xor": lambda m: torch.logical_xor(m.z, m.i),
        "add_in_place": lambda m: (m.x * 1).add_(m.y, alpha=2),
        "mul_in_place": lambda m: (m.x * 1).mul_(0.5).clamp_(-0.5, 0.5),
        "cast": lambda m: (m.x * 3).to(torch.int64),
        "cast_bool": lambda m: m.i.bool(),
        "cast_double": lambda m: m.x.double() * 3,
        "type_as": lambda m: m.i.type_as(m.x) * m.x,
        "detach": lambda m: m.x.detach() * m.x,
    }
    save("elementwise", Cases(tensors, calls))


@family
def activation():
    tensors = {
        "x": draw(11, 2, 6, low=-4, high=4),
        "z": torch.tensor([[0.0, 1.0, -1.0, 3.0, -3.0, 6.0]]),  # where derivatives jump
        "c": draw(12, 2, 3, 4),
        "slope": torch.tensor([0.1, 0.3, -0.2]),
        "one": torch.tensor([0.25]),
    }
    simple = "relu relu6 hardtanh gelu silu mish hardswish hardsigmoid leaky_relu elu selu celu softplus softsign " \
             "logsigmoid tanhshrink hardshrink softshrink"
    calls = {f"{name}_{key}": (lambda name, key: lambda m: getattr(F, name)(getattr(m, key)))(name, key)
             for name in simple.split() for key in ("x", "z")}
    calls |= {
        "gelu_tanh": lambda m: F.gelu(m.x, approximate="tanh"),
        "hardtanh_limits": lambda m: F.hardtanh(m.x, -0.5, 2),
        "leaky_relu_slope": lambda m: F.leaky_relu(m.x, 0.3),
        "elu_alpha": lambda m: F.elu(m.x, 0.4),
        "celu_alpha": lambda m: F.celu(m.x, 1.7),
        "softplus_beta": lambda m: F.softplus(m.x, 3),
        "softplus_threshold": lambda m: F.softplus(m.x, 1, 2),
        "threshold": lambda m: F.threshold(m.x, 0.5, -7),
        "hardshrink_limit": lambda m: F.hardshrink(m.x, 1.5),
        "softshrink_limit": lambda m: F.softshrink(m.x, 1.5),
        "rrelu": lambda m: F.rrelu(m.x, 0.1, 0.3, training=False),
        "prelu": lambda m: F.prelu(m.c, m.slope),
        "prelu_rank_2": lambda m: F.prelu(m.x[:, :3], m.slope),
        "prelu_one": lambda m: F.prelu(m.x, m.one),
        "glu": lambda m: F.glu(m.x),
        "glu_dim": lambda m: F.glu(m.x, 0),
        "softmax": lambda m: F.softmax(m.c, 1),
        "softmax_last": lambda m: F.softmax(m.x, -1),
        "softmax_double": lambda m: F.softmax(m.x, -1, dtype=torch.float64),
        "log_softmax": lambda m: F.log_softmax(m.c, -2),
        "softmin": lambda m: F.softmin(m.x, 1),
        "relu_in_place": lambda m: F.relu(m.x * 1, inplace=True),
        "silu_in_place": lambda m: F.silu(m.x * 1, inplace=True),
    }
    save("activation", Cases(tensors, calls))


@family
def window():
    """Convolutions, pools, sampling, borders."""
    equal = torch.tensor([1.0, 2.0, 2.0, 0.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0]).reshape(1, 1, 2, 5)
    tensors = {
        "x1": draw(21, 1, 4, 9),
        "x2": draw(22, 1, 4, 7, 6),
        "x3": draw(23, 1, 2, 5, 4, 3),
        "single": draw(24, 4, 7, 5),
        "equal": equal,
        "w1": draw(31, 4, 4, 3),
        "w2": draw(32, 6, 4, 3, 2, low=-1, high=1),
        "g2": draw(33, 4, 2, 3, 3),
        "d2": draw(34, 8, 1, 3, 3),
        "w3": draw(35, 3, 2, 2, 2, 2),
        "b4": draw(36, 4),
        "b6": draw(37, 6),
        "t2": draw(38, 4, 3, 3, 3),
        "tg2": draw(39, 4, 2, 2, 3),
        "grid": draw(40, 1, 3, 4, 2, low=-1.2, high=1.2),
    }
    calls = {
        "conv1d": lambda m: F.conv1d(m.x1, m.w1, m.b4, stride=2, padding=1),
        "conv1d_same": lambda m: F.conv1d(m.x1, m.w1, padding="same", dilation=2),
        "conv2d": lambda m: F.conv2d(m.x2, m.w2, m.b6),
        "conv2d_pads": lambda m: F.conv2d(m.x2, m.w2, None, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
        "conv2d_same": lambda m: F.conv2d(m.x2, m.w2, m.b6, padding="same"),
        "conv2d_valid": lambda m: F.conv2d(m.x2, m.w2, m.b6, padding="valid", stride=2),
        "conv2d_groups": lambda m: F.conv2d(m.x2, m.g2, m.b4, groups=2, padding=1),
        "conv2d_depthwise": lambda m: F.conv2d(m.x2, m.d2, groups=4, padding=1),
        "conv2d_single": lambda m: F.conv2d(m.single, m.w2, m.b6),
        "conv3d": lambda m: F.conv3d(m.x3, m.w3, padding=1, stride=2),
        "conv_transpose1d": lambda m: F.conv_transpose1d(m.x1, m.w1, m.b4, stride=2, padding=1, output_padding=1),
        "conv_transpose2d": lambda m: F.conv_transpose2d(m.x2, m.t2, stride=2, padding=1),
        "conv_transpose2d_more": lambda m: F.conv_transpose2d(m.x2, m.tg2, m.b4, stride=(2, 3), output_padding=1,
                                                              groups=2, dilation=(1, 2)),
        "conv_transpose3d": lambda m: F.conv_transpose3d(m.x3, m.w3[:2], stride=2),
        "convolution": lambda m: torch.convolution(m.x2, m.w2, m.b6, [1, 1], [1], [1, 1], False, [0, 0], 1),
        "max_pool1d": lambda m: F.max_pool1d(m.x1, 3),
        "max_pool2d": lambda m: F.max_pool2d(m.x2, 3, 2, 1),
        "max_pool2d_ceil": lambda m: F.max_pool2d(m.x2, (2, 3), 2, ceil_mode=True),
        "max_pool2d_dilation": lambda m: F.max_pool2d(m.x2, 2, 1, 1, dilation=2),
        "max_pool2d_equal": lambda m: F.max_pool2d(m.equal, 2, 1),
        "max_pool2d_indices": lambda m: F.max_pool2d(m.x2, 2, return_indices=True),
        "max_pool2d_single": lambda m: F.max_pool2d(m.single, 2),
        "max_pool3d": lambda m: F.max_pool3d(m.x3, 2, 1),
        "avg_pool1d": lambda m: F.avg_pool1d(m.x1, 3, 2, 1),
        "avg_pool2d": lambda m: F.avg_pool2d(m.x2, 3, 2, 1),
        "avg_pool2d_inside": lambda m: F.avg_pool2d(m.x2, 3, 2, 1, count_include_pad=False),
        "avg_pool2d_ceil": lambda m: F.avg_pool2d(m.x2, 3, 2, 1, ceil_mode=True),
        "avg_pool2d_ceil_inside": lambda m: F.avg_pool2d(m.x2, (3, 2), 2, 1, ceil_mode=True, count_include_pad=False),
        "avg_pool2d_divisor": lambda m: F.avg_pool2d(m.x2, 3, 2, 1, divisor_override=5),
        "avg_pool2d_divisor_ceil": lambda m: F.avg_pool2d(m.x2, 2, 2, ceil_mode=True, divisor_override=3),
        "avg_pool3d": lambda m: F.avg_pool3d(m.x3, 2, padding=1),
        "adaptive_avg_pool1d": lambda m: F.adaptive_avg_pool1d(m.x1, 4),
        "adaptive_avg_pool2d_one": lambda m: F.adaptive_avg_pool2d(m.x2, 1),
        "adaptive_avg_pool2d_even": lambda m: F.adaptive_avg_pool2d(m.x2, (7, 3)),
        "adaptive_avg_pool2d_odd": lambda m: F.adaptive_avg_pool2d(m.x2, (3, 4)),
        "adaptive_avg_pool2d_more": lambda m: F.adaptive_avg_pool2d(m.x2, (10, 6)),
        "adaptive_avg_pool2d_none": lambda m: F.adaptive_avg_pool2d(m.x2, (None, 2)),
        "adaptive_avg_pool2d_single": lambda m: F.adaptive_avg_pool2d(m.single, (2, 2)),
        "adaptive_avg_pool3d": lambda m: F.adaptive_avg_pool3d(m.x3, (2, 3, 2)),
        "adaptive_max_pool1d": lambda m: F.adaptive_max_pool1d(m.x1, 2),
        "adaptive_max_pool2d_one": lambda m: F.adaptive_max_pool2d(m.x2, 1),
        "adaptive_max_pool2d_even": lambda m: F.adaptive_max_pool2d(m.x2, (7, 2)),
        "adaptive_max_pool2d_odd": lambda m: F.adaptive_max_pool2d(m.x2, (3, 4)),
        "adaptive_max_pool2d_equal": lambda m: F.adaptive_max_pool2d(m.equal, (2, 3)),
        "nearest": lambda m: F.interpolate(m.x2, scale_factor=2),
        "nearest_size": lambda m: F.interpolate(m.x2, size=(5, 11)),
        "nearest_scale": lambda m: F.interpolate(m.x2, scale_factor=1.3),
        "nearest_exact": lambda m: F.interpolate(m.x2, size=(5, 11), mode="nearest-exact"),
        "nearest_1d": lambda m: F.interpolate(m.x1, scale_factor=1.5),
        "nearest_3d": lambda m: F.interpolate(m.x3, scale_factor=2),
        "linear": lambda m: F.interpolate(m.x1, size=5, mode="linear"),
        "bilinear": lambda m: F.interpolate(m.x2, scale_factor=2, mode="bilinear"),
        "bilinear_corners": lambda m: F.interpolate(m.x2, size=(9, 4), mode="bilinear", align_corners=True),
        "bilinear_scales": lambda m: F.interpolate(m.x2, scale_factor=(1.7, 0.6), mode="bilinear"),
        "bilinear_recomputed": lambda m: F.interpolate(m.x2, scale_factor=1.7, mode="bilinear",
                                                       recompute_scale_factor=True),
        "bicubic": lambda m: F.interpolate(m.x2, size=(9, 4), mode="bicubic"),
        "bicubic_corners": lambda m: F.interpolate(m.x2, scale_factor=1.5, mode="bicubic", align_corners=True),
        "trilinear": lambda m: F.interpolate(m.x3, size=(3, 6, 4), mode="trilinear"),
        "bilinear_smooth": lambda m: F.interpolate(m.x2, size=(3, 4), mode="bilinear", antialias=True),
        "bilinear_smooth_larger": lambda m: F.interpolate(m.x2, scale_factor=(1.5, 0.4), mode="bilinear",
                                                          antialias=True),
        "bicubic_smooth": lambda m: F.interpolate(m.x2, size=(3, 9), mode="bicubic", antialias=True),
        "bicubic_smooth_corners": lambda m: F.interpolate(m.x2, size=(3, 4), mode="bicubic", antialias=True,
                                                          align_corners=True),
        "area": lambda m: F.interpolate(m.x2, size=(3, 4), mode="area"),
        "grid_sample": lambda m: F.grid_sample(m.x2, m.grid.detach(), align_corners=False),
        "grid_sample_nearest": lambda m: F.grid_sample(m.x2, m.grid.detach(), mode="nearest", padding_mode="border",
                                                       align_corners=True),
        "pad": lambda m: F.pad(m.x2, (1, 2)),
        "pad_value": lambda m: F.pad(m.x2, (1, 0, 2, 1), value=0.5),
        "pad_negative": lambda m: F.pad(m.x2, (-1, 2, 0, -2)),
        "pad_reflect": lambda m: F.pad(m.x2, (2, 1, 1, 3), mode="reflect"),
        "pad_replicate": lambda m: F.pad(m.x2, (2, 1, 0, 3), mode="replicate"),
        "pad_circular": lambda m: F.pad(m.x2, (2, 1, 0, 3), mode="circular"),
        "pad_reflect_1d": lambda m: F.pad(m.x1, (2, 3), mode="reflect"),
        "unfold": lambda m: F.unfold(m.x2, (3, 2), dilation=(1, 2), padding=1, stride=(2, 1)),
        "fold": lambda m: F.fold(m.x1.repeat(1, 1, 2)[:, :, :10], (5, 6), (2, 2), stride=(2, 1)),
        "local_response_norm": lambda m: F.local_response_norm(m.x2, 3, alpha=0.1),
    }
    save("window", Cases(tensors, calls), is_double=True)


@family
def normalization():
    tensors = {
        "x": draw(51, 3, 4, 5),
        "x4": draw(52, 2, 4, 3, 3),
        "x2": draw(53, 4, 4),
        "weight": draw(54, 4, low=0.5, high=2),
        "bias": draw(55, 4),
        "last": draw(56, 5, low=0.5, high=2),
        "last_bias": draw(57, 5),
        "wide": draw(58, 4, 5),
        "wide_bias": draw(59, 4, 5),
        "v": draw(60, 3, 2, 4),
        "g": draw(61, 3, 1, 1, low=0.5, high=2),
    }
    modules = {
        "batch1": nn.BatchNorm1d(4),
        "batch2": nn.BatchNorm2d(4, eps=1e-3, momentum=0.3),
        "batch_flat": nn.BatchNorm1d(4),
        "plain": nn.BatchNorm2d(4, affine=False),
        "evaluated": nn.BatchNorm2d(4),
        "untracked": nn.BatchNorm2d(4, track_running_stats=False),
        "shared": nn.BatchNorm2d(4),
        "instance": nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
    }
    for seed, name in enumerate(modules):
        module = modules[name]
        if module.affine:
            module.weight.data = draw(70 + seed, 4, low=0.5, high=2)
            module.bias.data = draw(80 + seed, 4)
        if module.track_running_stats:
            module.running_mean.data = draw(90 + seed, 4)
            module.running_var.data = draw(100 + seed, 4, low=0.5, high=2)

    def evaluated(m):
        b = m.evaluated
        return F.batch_norm(m.x4, b.running_mean, b.running_var, b.weight, b.bias, False, 0.1, b.eps)

    calls = {
        "batch_norm_1d": lambda m: m.batch1(m.x),
        "batch_norm_2d": lambda m: m.batch2(m.x4),
        "batch_norm_flat": lambda m: m.batch_flat(m.x2),
        "batch_norm_plain": lambda m: m.plain(m.x4),
        "batch_norm_evaluated": evaluated,
        "batch_norm_untracked": lambda m: m.untracked(m.x4),
        "batch_norm_twice": lambda m: (m.shared(m.x4), m.shared(m.x4 * 2 + 1)),
        "layer_norm": lambda m: F.layer_norm(m.x, (5,), m.last, m.last_bias),
        "layer_norm_wide": lambda m: F.layer_norm(m.x, (4, 5), m.wide, m.wide_bias, 1e-3),
        "layer_norm_scale": lambda m: F.layer_norm(m.x, (5,), m.last),
        "layer_norm_bias": lambda m: F.layer_norm(m.x, (5,), None, m.last_bias),
        "layer_norm_plain": lambda m: F.layer_norm(m.x, (5,)),
        "rms_norm": lambda m: F.rms_norm(m.x, (5,), m.last, 1e-6),
        "rms_norm_plain": lambda m: F.rms_norm(m.x, (4, 5)),
        "group_norm": lambda m: F.group_norm(m.x4, 2, m.weight, m.bias),
        "group_norm_plain": lambda m: F.group_norm(m.x, 4),
        "instance_norm": lambda m: F.instance_norm(m.x4, weight=m.weight, bias=m.bias),
        "instance_norm_tracked": lambda m: m.instance(m.x4),
        "instance_norm_plain": lambda m: F.instance_norm(m.x, eps=1e-2),
        "weight_norm": lambda m: torch._weight_norm(m.v, m.g, 0),
        "weight_norm_all": lambda m: torch._weight_norm(m.v, m.g[0], -1),
    }
    save("normalization", Cases(tensors, calls, modules))


@family
def reduction():
    tensors = {
        "x": draw(111, 2, 3, 4),
        "p": draw(112, 2, 3, low=0.5, high=2),
        "n": draw(113),
        "equal": torch.tensor([[1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0]]),
        "zero": torch.zeros(2, 2),
        "i": integers(114, 2, 3, low=-4, high=5),
        "b": torch.tensor([[True, True], [True, False]]),
        "other": draw(115, 2, 3, 4),
    }
    calls = {
        "sum": lambda m: m.x.sum(),
        "sum_dim": lambda m: m.x.sum(1),
        "sum_dims": lambda m: m.x.sum((0, -1), keepdim=True),
        "sum_none": lambda m: m.x.sum(dim=()),
        "sum_number": lambda m: m.n.sum(),
        "sum_bools": lambda m: m.b.sum(),
        "sum_integers": lambda m: m.i.sum(-1),
        "sum_double": lambda m: m.x.sum(0, dtype=torch.float64),
        "mean": lambda m: m.x.mean(),
        "mean_dim": lambda m: m.x.mean(-1, keepdim=True),
        "mean_dims": lambda m: m.x.mean((1, 2)),
        "mean_of_integers": lambda m: m.i.mean(1, dtype=torch.float32),
        "prod": lambda m: m.p.prod(),
        "prod_dim": lambda m: m.p.prod(1, keepdim=True),
        "logsumexp": lambda m: m.x.logsumexp(2),
        "logsumexp_dims": lambda m: m.x.logsumexp((0, 1), keepdim=True),
        "amax": lambda m: m.equal.amax(1),
        "amax_all": lambda m: m.equal.amax(),
        "amin_dims": lambda m: m.x.amin((0, 2), keepdim=True),
        "max": lambda m: m.equal.max(),
        "min": lambda m: m.x.min(),
        "max_dim": lambda m: m.equal.max(1),
        "max_dim_keep": lambda m: m.x.max(-2, keepdim=True),
        "min_dim": lambda m: m.x.min(0),
        "max_integers": lambda m: m.i.max(),
        "aminmax": lambda m: torch.aminmax(m.x, dim=1),
        "argmax": lambda m: m.equal.argmax(),
        "argmax_dim": lambda m: m.equal.argmax(1),
        "argmin_keep": lambda m: m.x.argmin(0, keepdim=True),
        "argmax_keep": lambda m: m.x.argmax(keepdim=True),
        "any": lambda m: m.b.any(),
        "all": lambda m: m.b.all(),
        "any_dim": lambda m: (m.x > 1.5).any(-1),
        "all_keep": lambda m: m.b.all(0, keepdim=True),
        "all_numbers": lambda m: m.i.all(1),
        "count_nonzero": lambda m: torch.count_nonzero(m.i, dim=1),
        "var": lambda m: m.x.var(),
        "var_dim": lambda m: m.x.var(1, keepdim=True),
        "var_biased": lambda m: m.x.var((0, 2), unbiased=False),
        "var_correction": lambda m: torch.var(m.x, dim=2, correction=2),
        "std": lambda m: m.x.std(-1),
        "std_equal": lambda m: m.equal.std(1),
        "std_biased": lambda m: m.x.std(unbiased=False),
        "var_mean": lambda m: torch.var_mean(m.x, dim=(1, 2), correction=0),
        "std_mean": lambda m: torch.std_mean(m.x, dim=0, keepdim=True),
        "norm": lambda m: m.x.norm(),
        "norm_dim": lambda m: m.x.norm(dim=1, keepdim=True),
        "norm_one": lambda m: m.x.norm(p=1, dim=(0, 2)),
        "norm_three": lambda m: m.x.norm(p=3, dim=-1),
        "norm_endless": lambda m: m.x.norm(p=float("inf"), dim=1),
        "norm_zero": lambda m: m.zero.norm(dim=1),
        "vector_norm": lambda m: torch.linalg.vector_norm(m.x, dim=2),
        "vector_norm_count": lambda m: torch.linalg.vector_norm(m.i.float(), ord=0, dim=1),
        "linalg_norm": lambda m: torch.linalg.norm(m.x, dim=0),
        "normalize": lambda m: F.normalize(m.x, dim=1),
        "cosine_similarity": lambda m: F.cosine_similarity(m.x, m.other),
        "cosine_similarity_last": lambda m: F.cosine_similarity(m.x, m.other, dim=-1),
        "pairwise_distance": lambda m: F.pairwise_distance(m.x, m.other, keepdim=True),
    }
    save("reduction", Cases(tensors, calls))


def changed(tensor, change):
    """A copy of the tensor after a change in place of some of it."""
    copy = tensor.clone()
    change(copy)
    return copy


def changed_apart(tensor, change):
    """The same of one of several views at once, which PyTorch allows without gradients alone."""
    with torch.no_grad():
        return changed(tensor, change)


@family
def movement():
    tensors = {
        "x": draw(121, 2, 3, 4),
        "y": draw(122, 2, 1, 4),
        "v": draw(123, 3),
        "w": draw(124, 2),
        "image": draw(125, 1, 8, 2, 3),
        "empty": torch.zeros(0),
        "i": integers(126, 2, 3),
    }
    calls = {
        "reshape": lambda m: m.x.reshape(4, -1),
        "view": lambda m: m.x.view(2, 12) * 2,
        "view_as": lambda m: m.x.view_as(m.x.view(6, 4)) * 2,
        "flatten": lambda m: m.x.flatten(),
        "flatten_some": lambda m: m.x.flatten(1),
        "flatten_first": lambda m: torch.flatten(m.x, 0, 1),
        "unflatten": lambda m: m.image.unflatten(1, (2, -1)),
        "ravel": lambda m: m.x.ravel() * 2,
        "permute": lambda m: m.x.permute(2, 0, 1),
        "permute_negative": lambda m: m.x.permute(-1, 0, -2),
        "transpose": lambda m: m.x.transpose(0, -1),
        "swapaxes": lambda m: m.x.swapaxes(0, 1),
        "t": lambda m: m.x[0].t(),
        "mT": lambda m: m.x.mT,
        "T": lambda m: m.x[1].T,
        "movedim": lambda m: m.x.movedim(0, 2),
        "movedim_some": lambda m: m.image.movedim((0, 1), (2, 0)),
        "squeeze": lambda m: m.y.squeeze(),
        "squeeze_dim": lambda m: m.y.squeeze(1) * 2,
        "squeeze_nothing": lambda m: m.y.squeeze(0) * 2,
        "unsqueeze": lambda m: m.x.unsqueeze(-1),
        "unsqueeze_front": lambda m: m.x[None] * 2,
        "expand": lambda m: m.y.expand(2, 3, -1),
        "expand_more": lambda m: m.v.expand(2, 2, 3),
        "expand_as": lambda m: m.y.expand_as(m.x),
        "broadcast_to": lambda m: torch.broadcast_to(m.v, (2, 3)),
        "repeat": lambda m: m.x.repeat(1, 2, 1),
        "repeat_more": lambda m: m.v.repeat(2, 2),
        "tile": lambda m: m.x.tile(2),
        "tile_more": lambda m: m.v.tile(2, 2),
        "repeat_interleave": lambda m: m.x.repeat_interleave(2, dim=1),
        "repeat_interleave_flat": lambda m: m.x.repeat_interleave(3),
        "cat": lambda m: torch.cat([m.x, m.y], 1),
        "cat_mixed": lambda m: torch.cat([m.v, m.i[0]]),
        "cat_empty": lambda m: torch.cat([m.empty, m.x], -1),
        "cat_nothing": lambda m: torch.cat([m.x, m.x[:, :0]], 1),
        "cat_nothings": lambda m: torch.cat([m.x[:, :0], m.y[:, :0]], 1).sum(1),
        "stack": lambda m: torch.stack([m.x, m.x * 2], 1),
        "stack_last": lambda m: torch.stack([m.v, m.v], -1),
        "hstack": lambda m: torch.hstack([m.x, m.y]),
        "vstack": lambda m: torch.vstack([m.v, m.v * 3]),
        "split": lambda m: m.x.split(2, 1),
        "split_sizes": lambda m: m.x.split([1, 3], -1),
        "chunk": lambda m: m.x.chunk(3, 2),
        "tensor_split": lambda m: m.x.tensor_split(3, 2),
        "unbind": lambda m: m.x.unbind(1),
        "slice": lambda m: m.x[:, 1:, ::2],
        "slice_negative": lambda m: m.x[..., -3:-1],
        "slice_beyond": lambda m: m.x[:, :9] * 2,
        "select": lambda m: m.x[:, -1],
        "select_first": lambda m: m.x[0, :, 2],
        "narrow": lambda m: m.x.narrow(2, 1, 2),
        "narrow_end": lambda m: m.x.narrow(2, -2, 2),
        "roll": lambda m: m.x.roll(1, 2),
        "roll_some": lambda m: m.x.roll((-1, 5), (0, 2)),
        "roll_flat": lambda m: m.x.roll(3),
        "flip": lambda m: m.x.flip(0, 2),
        "pixel_shuffle": lambda m: F.pixel_shuffle(m.image, 2),
        "pixel_unshuffle": lambda m: F.pixel_unshuffle(m.image[..., :2], 2),
        "pixel_shuffle_single": lambda m: F.pixel_shuffle(m.image[0], 2),
        "channel_shuffle": lambda m: F.channel_shuffle(m.image, 2),
        "meshgrid": lambda m: torch.meshgrid(m.v, m.w, indexing="ij"),
        "meshgrid_xy": lambda m: torch.meshgrid(m.v, m.w, indexing="xy"),
        "unfold": lambda m: m.x.unfold(2, 2, 1),
        "unfold_middle": lambda m: m.x.unfold(1, 2, 1),
        "change_slice": lambda m: changed(m.x, lambda c: c[:, 1:].add_(m.y)),
        "change_select": lambda m: changed(m.x, lambda c: c[1].mul_(m.x[0])),
        "change_step": lambda m: changed(m.x, lambda c: c[:, :, ::2].zero_()),
        "change_turned": lambda m: changed(m.x, lambda c: c.transpose(1, 2)[:, 0].add_(1)),
        "change_view": lambda m: changed(m.x, lambda c: c.view(6, 4)[2:4].mul_(3)),
        "change_squeezed": lambda m: changed(m.y, lambda c: c.squeeze(1).add_(2)),
        "change_copied": lambda m: changed(m.x, lambda c: c[0, :, 1:3].copy_(m.x[1, :, :2])),
        "change_split": lambda m: m.x * changed_apart(m.x, lambda c: c.split([1, 3], -1)[1].mul_(m.y[..., 1:])),
        "change_splits": lambda m: m.x * changed_apart(
            m.x, lambda c: [part.mul_(i - 2) for i, part in enumerate(c.split(2, 1))]),
        "change_chunk": lambda m: m.x * changed_apart(m.x, lambda c: c.chunk(2, 2)[0].add_(m.x[:, :, 2:])),
        "change_unbind": lambda m: m.x * changed_apart(m.x, lambda c: c.unbind(1)[2].mul_(m.x[:, 0])),
        "change_narrow": lambda m: changed(m.x, lambda c: c.narrow(2, 1, 2).mul_(m.x[:, :, :2])),
        "change_narrow_end": lambda m: changed(m.x, lambda c: c.narrow(2, -2, 2).zero_()),
        "contiguous": lambda m: m.x.transpose(0, 1).contiguous() * 2,
        "clone": lambda m: m.x.clone() * 2,
    }
    save("movement", Cases(tensors, calls))


@family
def loss():
    scores = draw(131, 4, 5)
    planes = draw(132, 2, 3, 2, 2)
    tensors = {
        "x": scores,
        "planes": planes,
        "single": draw(133, 5),
        "weight": draw(134, 5, low=0.2, high=2),
        "plane_weight": draw(135, 3, low=0.2, high=2),
        "shares": torch.softmax(draw(136, 4, 5), 1),
        "y": draw(137, 4, 5),
        "p": draw(138, 4, 5, low=0.05, high=0.95),
        "q": draw(139, 4, 5, low=0.05, high=0.95),
        "labels": torch.tensor([1, 0, 4, 2]),
        "ignored": torch.tensor([1, -100, 4, 2]),
        "own": torch.tensor([1, 3, 4, 3]),
        "plane_labels": torch.tensor([[[0, 1], [2, 2]], [[1, -100], [0, 1]]]),
        "signs": torch.tensor([[1, -1, 1, -1, 1]]).repeat(4, 1),
    }
    calls = {}
    for reduction in ("mean", "sum", "none"):
        add = lambda name, call, r=reduction: calls.update({f"{name}_{r}": lambda m: call(m, r)})
        add("cross_entropy", lambda m, r: F.cross_entropy(m.x, m.labels, reduction=r))
        add("cross_entropy_weights", lambda m, r: F.cross_entropy(m.x, m.ignored, m.weight.detach(), reduction=r))
        add("cross_entropy_smooth", lambda m, r: F.cross_entropy(m.x, m.ignored, reduction=r, label_smoothing=0.1))
        add("cross_entropy_smooth_weights", lambda m, r: F.cross_entropy(
            m.planes, m.plane_labels, m.plane_weight.detach(), reduction=r, label_smoothing=0.2))
        add("cross_entropy_shares", lambda m, r: F.cross_entropy(m.x, m.shares.detach(), reduction=r))
        add("mse", lambda m, r: F.mse_loss(m.x, m.y, reduction=r))
        add("smooth_l1", lambda m, r: F.smooth_l1_loss(m.x, m.y, reduction=r, beta=0.5))
        add("huber", lambda m, r: F.huber_loss(m.x, m.y, reduction=r, delta=0.7))
        add("bce", lambda m, r: F.binary_cross_entropy(m.p, m.q.detach(), reduction=r))
        add("bce_logits", lambda m, r: F.binary_cross_entropy_with_logits(m.x, m.q.detach(), reduction=r))
    calls |= {
        "cross_entropy_own": lambda m: F.cross_entropy(m.x, m.own, ignore_index=3),
        "cross_entropy_planes": lambda m: F.cross_entropy(m.planes, m.plane_labels),
        "cross_entropy_single": lambda m: F.cross_entropy(m.single, m.labels[0]),
        "cross_entropy_shares_smooth": lambda m: F.cross_entropy(m.x, m.shares.detach(), m.weight.detach(),
                                                                 label_smoothing=0.1),
        "nll": lambda m: F.nll_loss(F.log_softmax(m.x, 1), m.ignored, m.weight.detach()),
        "nll_planes": lambda m: F.nll_loss(F.log_softmax(m.planes, 1), m.plane_labels),
        "l1": lambda m: F.l1_loss(m.x, m.y),
        "bce_weight": lambda m: F.binary_cross_entropy(m.p, m.q.detach(), m.weight.detach()),
        "bce_logits_weights": lambda m: F.binary_cross_entropy_with_logits(
            m.x, m.q.detach(), m.weight.detach(), pos_weight=m.weight.detach() * 2),
        "kl_div": lambda m: F.kl_div(F.log_softmax(m.x, 1), m.shares.detach(), reduction="batchmean"),
        "kl_div_logarithms": lambda m: F.kl_div(F.log_softmax(m.x, 1), F.log_softmax(m.y, 1), reduction="sum",
                                                log_target=True),
        "poisson": lambda m: F.poisson_nll_loss(m.x, m.q.detach()),
        "poisson_rates": lambda m: F.poisson_nll_loss(m.p, m.q.detach(), log_input=False),
        "soft_margin": lambda m: F.soft_margin_loss(m.x, m.signs),
        "margin_ranking": lambda m: F.margin_ranking_loss(m.x, m.y, m.signs, margin=0.3),
        "triplet_margin": lambda m: F.triplet_margin_loss(m.x, m.y, m.p, margin=3),
        "triplet_margin_swap": lambda m: F.triplet_margin_loss(m.x, m.y, m.p, margin=3, swap=True, reduction="none"),
        "hinge_embedding": lambda m: F.hinge_embedding_loss(m.x, m.signs),
    }
    save("loss", Cases(tensors, calls))


@family
def open_sizes():
    """The batch, and a length, are left open, and others when the references are made."""
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=3, max=64)
    tensors = {"w": draw(141, 4), "c": draw(142, 3, 4, 3, 3), "token": draw(143, 1, 1, 4)}
    make = lambda b, n: {"image": draw(144, b, 4, 4, 6), "words": draw(145, b, n, 4)}

    def scaled(m, image):
        return image * m.w[:, None, None]

    calls = {
        "conv": lambda m, image, words: F.conv2d(image, m.c, padding=1),
        "avg_pool": lambda m, image, words: F.avg_pool2d(scaled(m, image), 2),
        "adaptive": lambda m, image, words: F.adaptive_avg_pool2d(scaled(m, image), (3, 3)),
        "whole": lambda m, image, words: F.adaptive_avg_pool2d(scaled(m, image), 1).flatten(1),
        "interpolate": lambda m, image, words: F.interpolate(scaled(m, image), size=(4, 9), mode="bilinear"),
        "tokens": lambda m, image, words: torch.cat([m.token.expand(words.shape[0], -1, -1), words * m.w], 1),
        "heads": lambda m, image, words: (words * m.w).view(words.shape[0], words.shape[1], 2, 2).transpose(1, 2),
        "merged": lambda m, image, words: (words * m.w).reshape(-1, 4),
        "both": lambda m, image, words: (words * m.w).flatten(0, 1),
        "mean": lambda m, image, words: (words * m.w).mean((0, 1)),
        "var": lambda m, image, words: (words * m.w).var(1),
        "std": lambda m, image, words: (words * m.w).std((0, 1)),
        "last": lambda m, image, words: (words * m.w)[:, -1],
        "tail": lambda m, image, words: (words * m.w)[:, words.shape[1] - 2:],
        "roll": lambda m, image, words: (words * m.w).roll(1, 1),
        "flip": lambda m, image, words: (words * m.w).flip(1),
        "repeat": lambda m, image, words: m.token.repeat(words.shape[0], words.shape[1], 1),
        "dropped": lambda m, image, words: F.dropout(words * m.w, 0.5, False),
        "shuffle": lambda m, image, words: F.channel_shuffle(scaled(m, image), 2),
        "pad": lambda m, image, words: F.pad(words * m.w, (0, 0, 1, 2)),
        "split": lambda m, image, words: (words * m.w).split([1, 3], -1),
        "softmax": lambda m, image, words: (words * m.w).softmax(1),
        "norm": lambda m, image, words: F.group_norm(scaled(m, image), 2),
        "change_from": lambda m, image, words: changed(words * m.w, lambda c: c[:, 1:].mul_(m.w)),
        "change_up_to": lambda m, image, words: changed(words * m.w, lambda c: c[:, :-1].mul_(m.w)),
        "change_step": lambda m, image, words: changed(words * m.w, lambda c: c[..., 1::2].mul_(m.w[:2])),
        "change_planes": lambda m, image, words: changed(
            scaled(m, image), lambda c: c[:, ::2].mul_(m.w[:2, None, None])),
        "change_end": lambda m, image, words: changed(words * m.w, lambda c: c[:, -2:].copy_(m.w.expand(2, 4))),
        "change_middle": lambda m, image, words: changed(words * m.w, lambda c: c[:, 1:3].mul_(m.w)),
        "change_first": lambda m, image, words: changed(words * m.w, lambda c: c[:, 0].mul_(m.w)),
        "change_last": lambda m, image, words: changed(words * m.w, lambda c: c[:, -1].mul_(m.w)),
        "change_split": lambda m, image, words: m.w * changed_apart(words, lambda c: c.split([1, 3], -1)[0].zero_()),
    }

    class Open(Cases):
        def forward(self, image, words):
            return super().forward(image=image, words=words)

    shapes = {"image": {0: batch}, "words": {0: batch, 1: length}}
    save("open_sizes", Open(tensors, calls), make(3, 5), shapes, make(4, 7))


@family
def drop():
    """Nothing is expected of these but their share of zeros: see the test."""
    tensors = {"x": torch.ones(40, 50), "planes": torch.ones(20, 50, 1, 2)}
    calls = {
        "dropout": lambda m: F.dropout(m.x, 0.3, True),
        "dropout_off": lambda m: F.dropout(m.x, 0.3, False),
        "dropout_none": lambda m: F.dropout(m.x, 0.0, True),
        "dropout_in_place": lambda m: F.dropout(m.x * 1, 0.25, True, inplace=True),
        "dropout2d": lambda m: F.dropout2d(m.planes, 0.4, True),
        "alpha_dropout": lambda m: F.alpha_dropout(m.x, 0.2, True),
        "bernoulli": lambda m: m.x * torch.empty(40, 1).bernoulli_(0.8).div_(0.8),
    }
    calls["floor"] = lambda m: m.x / 0.7 * (0.7 + torch.rand(40, 1)).floor_()
    save("drop", Cases(tensors, calls))


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    for each in FAMILIES.values():
        each()
    with zipfile.ZipFile(os.path.join(HERE, "operators.zip"), "w", zipfile.ZIP_DEFLATED) as whole:
        for name, data in ENTRIES.items():
            whole.writestr(zipfile.ZipInfo(name, DATE), data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
