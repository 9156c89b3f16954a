"""The models of the training references, written for PyTorch; see README.md."""
import math

import torch
from torch import nn
from torch.nn import functional


def scale_for_relu(model):
    """Weights that keep the size of signals through ReLU, so that 20 steps already learn."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")


class Mlp(nn.Module):
    """Fully connected: a wide input, two hidden layers."""

    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        x = torch.flatten(x, 1)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class Lenet(nn.Module):
    """Both poolings, sigmoid and tanh, and the shape arithmetic of x.view(x.size(0), -1)."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 40)
        self.fc2 = nn.Linear(40, 24)
        self.fc3 = nn.Linear(24, 10)
        for module in (self.conv1, self.conv2, self.fc1, self.fc2, self.fc3):
            nn.init.xavier_normal_(module.weight, gain=2.0)  # sigmoids shrink what they pass

    def forward(self, x):
        x = functional.avg_pool2d(torch.sigmoid(self.conv1(x)), 2)
        x = functional.max_pool2d(torch.tanh(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        x = torch.tanh(self.fc1(x))
        x = torch.sigmoid(self.fc2(x))
        return self.fc3(x)


class BranchingCnn(nn.Module):
    """Branches of unequal depth, a skip, concatenation, a value with four readers, grouped and
    depthwise and dilated and strided convolutions, a padded average pool, one layer used twice."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, padding=1)
        self.narrow = nn.Conv2d(12, 8, 1)
        self.wide = nn.Conv2d(8, 16, (1, 5), padding=(0, 2))
        self.depthwise = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.pointwise = nn.Conv2d(12, 16, 1)
        self.grouped = nn.Conv2d(12, 16, 3, padding=2, dilation=2, groups=4, bias=False)
        self.pooled = nn.Conv2d(12, 8, 1)
        self.reduce = nn.Conv2d(56, 16, 3, stride=2, padding=1)
        self.shared = nn.Conv2d(16, 16, 3, padding=1)
        self.scale = nn.Parameter(torch.full((1, 16, 1, 1), 0.5))
        self.fc = nn.Linear(16, 10)
        scale_for_relu(self)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        a = self.wide(torch.relu(self.narrow(x)))
        b = self.pointwise(torch.relu(self.depthwise(x)))
        c = self.grouped(x)
        d = self.pooled(functional.avg_pool2d(x, 3, stride=1, padding=1))
        x = torch.relu(torch.cat([a, b * torch.sigmoid(c), c, d], 1))
        x = torch.relu(self.reduce(x))
        y = torch.relu(self.shared(x))
        x = x + self.scale * self.shared(y)
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        x = functional.adaptive_avg_pool2d(x, 1)
        return self.fc(torch.flatten(x, 1))


class BatchnormCnn(nn.Module):
    """BatchNormalization over images and over features, without pooling before the last layer."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16, eps=1e-3, momentum=0.2)
        self.conv3 = nn.Conv2d(16, 24, 3, stride=2, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(24)
        self.fc1 = nn.Linear(384, 20, bias=False)
        self.bn4 = nn.BatchNorm1d(20)
        self.fc2 = nn.Linear(20, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        x = functional.leaky_relu(self.bn3(self.conv3(x)), 0.1)
        x = torch.relu(self.bn4(self.fc1(torch.flatten(x, 1))))
        return self.fc2(x)


class Recurrent(nn.Module):
    """Two layers of LSTM in both directions, a GRU and an RNN, read at their last steps."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(12, 10, batch_first=True)
        self.rnn = nn.RNN(10, 8, batch_first=True)
        self.fc = nn.Linear(14, 10)

    def forward(self, x):
        y, (_, cell) = self.lstm(x)
        y, _ = self.gru(y)
        _, last = self.rnn(y)
        return self.fc(torch.cat([last[0], cell[3]], 1))


class BasicBlock(nn.Module):
    """The residual block of ResNet-18."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        skip = x if self.downsample is None else self.downsample(x)
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + skip)


class Resnet18(nn.Module):
    """ResNet-18 with torchvision's structure and parameter names; `width` 64 is the real one.

    `branch_scale` is the initial weight of each block's last normalisation: quiet branches, so
    that rounding grows less with depth."""

    def __init__(self, width, branch_scale, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._stage(width, width, 1)
        self.layer2 = self._stage(width, 2 * width, 2)
        self.layer3 = self._stage(2 * width, 4 * width, 2)
        self.layer4 = self._stage(4 * width, 8 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width, classes)
        scale_for_relu(self)
        for module in self.modules():
            if isinstance(module, BasicBlock):
                nn.init.constant_(module.bn2.weight, branch_scale)

    @staticmethod
    def _stage(inputs, outputs, stride):
        return nn.Sequential(BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1))

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class RmsNorm(nn.Module):
    """As the LLaMA models write it."""

    def __init__(self, width, epsilon=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.promote_types(kind, torch.float32))
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.weight * x.to(kind)


class HandLayerNorm(nn.Module):
    """As the first BERT models wrote it."""

    def __init__(self, width, epsilon=1e-12):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        return self.weight * ((x - mean) / torch.sqrt(variance + self.epsilon)) + self.bias


def gelu_erf(x):
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def gelu_new(x):
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
    return 0.5 * x * (1.0 + torch.tanh(inner))


def gelu_fast(x):
    return 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


class NormedMlp(nn.Module):
    """Each normalisation and gated activation of transformers, in the ways they are written; the
    last normalisation has no weights."""

    def __init__(self, width):
        super().__init__()
        self.gates = (functional.gelu, gelu_erf, gelu_new, gelu_fast, functional.silu,
                      lambda x: functional.gelu(x, approximate="tanh"),
                      lambda x: x * torch.sigmoid(1.702 * x))
        norms = (nn.LayerNorm, RmsNorm, HandLayerNorm)
        self.norms = nn.ModuleList(norms[i % 3](width) for i in range(len(self.gates)))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in self.gates)
        self.head = nn.Linear(width, 10)
        for norm in self.norms:
            nn.init.uniform_(norm.weight, 0.5, 1.5)

    def forward(self, x):
        for norm, layer, gate in zip(self.norms, self.layers, self.gates):
            x = x + gate(layer(norm(x)))
        mean = x.mean(-1, keepdim=True)
        x = (x - mean) / torch.sqrt((x - mean).pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.head(x.mean(1))


class NormedCnn(nn.Module):
    """GroupNorm, InstanceNorm with and without weights, and LayerNorm over channels put last."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.group1 = nn.GroupNorm(4, 8)
        self.conv2 = nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.instance = nn.InstanceNorm2d(12, affine=True)
        self.conv3 = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.layer = nn.LayerNorm(12)
        self.point = nn.Conv2d(12, 12, 1)
        self.group2 = nn.GroupNorm(3, 12, affine=False)
        self.plain = nn.InstanceNorm2d(12)
        self.fc = nn.Linear(12, 10)
        for norm in (self.group1, self.instance, self.layer):
            nn.init.uniform_(norm.weight, 0.5, 1.5)

    def forward(self, x):
        x = functional.silu(self.group1(self.conv1(x)))
        x = functional.gelu(self.instance(self.conv2(x)))
        y = self.layer(self.conv3(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = x + functional.silu(self.group2(self.point(y)))
        x = functional.hardswish(self.plain(x)) + x
        x = functional.adaptive_avg_pool2d(x, 1)
        return self.fc(torch.flatten(x, 1))
