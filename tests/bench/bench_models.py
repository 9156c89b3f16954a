"""The models of `make bench`, the same for Penstock and for PyTorch: built from fixed seeds."""
import numpy
import torch
from torch import nn

SEED = 7
BATCHES = 2  # distinct batches in the data files


def mlp4096():
    return nn.Sequential(nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                         nn.Linear(4096, 10))


def mlp2048():
    """Layers of equal work, which two stages share evenly."""
    layers = [nn.Linear(2048, 2048) for _ in range(6)]
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())],
                         nn.Linear(2048, 10))


def resnet18():
    import torchvision
    return torchvision.models.resnet18(weights=None)


def resnet50():
    import torchvision
    return torchvision.models.resnet50(weights=None)


def inception_v3():
    import torchvision
    return torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=False)


def densenet121():
    import torchvision
    return torchvision.models.densenet121(weights=None)


class Attention(nn.Module):
    """Causal self-attention of several heads, as GPT-2's."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.joint = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        count, length, width = x.shape
        parts = (part.view(count, length, self.heads, width // self.heads).transpose(1, 2)
                 for part in self.joint(x).split(width, dim=2))
        q, k, v = parts
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        scores = scores.masked_fill(self.mask, float("-inf"))
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(count, length, width))


class Block(nn.Module):
    """One layer of a decoder, normalised before each half."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, length)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        hidden = self.wide(self.norm2(x))
        return x + self.narrow(nn.functional.gelu(hidden, approximate="tanh"))


class Decoder(nn.Module):
    """GPT-2: the embedding of the tokens is also the matrix of the scores."""

    def __init__(self, layers, width, heads, length, vocabulary):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*[Block(width, heads, length) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position, std=0.01)

    def forward(self, tokens):
        x = self.norm(self.blocks(self.token(tokens) + self.position))
        return nn.functional.linear(x, self.token.weight)


def gpt4():
    return Decoder(layers=4, width=768, heads=12, length=128, vocabulary=50257)


class Recurrent(nn.Module):
    """Two layers of 512 units, and a class from the last step."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(512, 512, num_layers=2, batch_first=True)
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


# name: (constructor, shape of one example, classes, batch)
MODELS = {
    "mlp4096": (mlp4096, (784,), 10, 128),
    "lstm512": (Recurrent, (64, 512), 10, 32),
    "mlp2048": (mlp2048, (2048,), 10, 256),
    "resnet18": (resnet18, (3, 224, 224), 1000, 8),
    "resnet50": (resnet50, (3, 224, 224), 1000, 8),
    "inception_v3": (inception_v3, (3, 299, 299), 1000, 8),
    "densenet121": (densenet121, (3, 224, 224), 1000, 8),
    "gpt4": (gpt4, (128,), 50257, 4),
}
# Models that read tokens and tell the next one after each: examples and labels are int64 alike.
OF_TOKENS = {"gpt4"}


def build(name):
    """The model in training mode, its initial parameters decided by SEED."""
    torch.manual_seed(SEED)
    return MODELS[name][0]().train()


def example_type(name):
    return torch.int64 if name in OF_TOKENS else torch.float32


def data(name):
    """inputs, float32 or tokens, and labels int64 of BATCHES batches."""
    _, shape, classes, batch = MODELS[name]
    random = numpy.random.RandomState(SEED)
    if name in OF_TOKENS:
        tokens = random.randint(0, classes, (BATCHES * batch, shape[0] + 1)).astype(numpy.int64)
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()
    inputs = random.standard_normal((BATCHES * batch,) + shape).astype(numpy.float32)
    return inputs, random.randint(0, classes, BATCHES * batch).astype(numpy.int64)
