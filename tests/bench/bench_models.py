"""The models of `make bench`, the same for Penstock and for PyTorch: built from fixed seeds."""
import os

import numpy
import torch
from torch import nn

SEED = 7
BATCHES = 2  # distinct batches in the data files
SCALE = int(os.environ.get("BENCH_SCALE", "1"))  # times the batches below: of a GPU


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


def gpt12():
    return Decoder(layers=12, width=768, heads=12, length=128, vocabulary=50257)


def gpt4_bytes():
    """The same of bytes: an answer is 128 KiB, where gpt4's is 25 MB."""
    return Decoder(layers=4, width=768, heads=12, length=128, vocabulary=256)


class EncoderLayer(nn.Module):
    """One of BERT's, with its dropouts: of the probabilities, and of both halves."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.drop1, self.drop2, self.drop3 = (nn.Dropout(dropout) for _ in range(3))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.size).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) / self.size ** 0.5
        mixed = self.drop1(torch.softmax(scores, dim=-1)) @ v
        mixed = mixed.transpose(1, 2).reshape(x.shape)
        x = self.norm1(x + self.drop2(self.out(mixed)))
        hidden = self.narrow(nn.functional.gelu(self.wide(x)))
        return self.norm2(x + self.drop3(hidden))


class Encoder(nn.Module):
    """BERT: a class from the first token."""

    def __init__(self, layers, width, heads, length, vocabulary):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.1)
        self.layers = nn.Sequential(*[EncoderLayer(width, heads, 0.1) for _ in range(layers)])
        self.pooler, self.head = nn.Linear(width, width), nn.Linear(width, 10)

    def forward(self, tokens):
        x = self.drop(self.norm(self.token(tokens) + self.position))
        return self.head(torch.tanh(self.pooler(self.layers(x)[:, 0])))


def bert4():
    return Encoder(layers=4, width=512, heads=8, length=128, vocabulary=30522)


class Recurrent(nn.Module):
    """Two layers of 512 units, and a class from the last step."""

    def __init__(self, kind):
        super().__init__()
        self.cells = kind(512, 512, num_layers=2, batch_first=True)
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


def vit_tiny():
    import torchvision
    return torchvision.models.VisionTransformer(224, 16, 12, 3, 192, 768)


def vit_b16():
    import torchvision
    return torchvision.models.vit_b_16(weights=None)


def convnext_tiny():
    import torchvision
    return torchvision.models.convnext_tiny(weights=None, stochastic_depth_prob=0.0)


def efficientnet_b0():
    import torchvision
    return torchvision.models.efficientnet_b0(weights=None, stochastic_depth_prob=0.0)


def mobilenet_v3_large():
    import torchvision
    return torchvision.models.mobilenet_v3_large(weights=None)


class UNet(nn.Module):
    """Four levels of two convolutions each, down and up again, each level joined with its like."""

    def __init__(self, classes, widths=(32, 64, 128, 256)):
        super().__init__()
        self.down = nn.ModuleList(self.pair(before, width) for before, width in zip((3,) + widths, widths))
        self.bottom = self.pair(widths[-1], 2 * widths[-1])
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in widths[::-1])
        self.up = nn.ModuleList(self.pair(2 * width, width) for width in widths[::-1])
        self.head = nn.Conv2d(widths[0], classes, 1)

    @staticmethod
    def pair(before, width):
        parts = []
        for channels in (before, width):
            parts += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        return nn.Sequential(*parts)

    def forward(self, x):
        kept = []
        for block in self.down:
            kept.append(block(x))
            x = nn.functional.max_pool2d(kept[-1], 2)
        x = self.bottom(x)
        for wider, block in zip(self.wider, self.up):
            x = block(torch.cat([kept.pop(), wider(x)], dim=1))
        return self.head(x).permute(0, 2, 3, 1)  # a class for each pixel


class Recommender(nn.Module):
    """DLRM: 13 counts and 26 categories; their vectors meet in pairs. SPARSE: gradients of rows alone."""

    COUNTS, TABLES, ROWS, WIDTH = 13, 26, 20000, 32

    def __init__(self, sparse):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(self.ROWS, self.WIDTH, sparse=sparse)
                                    for _ in range(self.TABLES))
        self.bottom = nn.Sequential(nn.Linear(self.COUNTS, 256), nn.ReLU(), nn.Linear(256, self.WIDTH), nn.ReLU())
        vectors = self.TABLES + 1
        pairs = [row * vectors + column for row in range(vectors) for column in range(row)]
        self.register_buffer("pairs", torch.tensor(pairs), persistent=False)
        self.top = nn.Sequential(nn.Linear(self.WIDTH + len(pairs), 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                 nn.Linear(256, 2))
        for table in self.tables:
            nn.init.uniform_(table.weight, -0.01, 0.01)

    def forward(self, x):
        counts = self.bottom(torch.log(x[:, :self.COUNTS].to(torch.float32) + 1.0))
        vectors = [counts] + [table(x[:, self.COUNTS + i]) for i, table in enumerate(self.tables)]
        vectors = torch.stack(vectors, dim=1)
        products = vectors @ vectors.transpose(1, 2)
        met = torch.index_select(products.flatten(1), 1, self.pairs)
        return self.top(torch.cat([counts, met], dim=1))


# name: (constructor, shape of one example, classes, batch)
MODELS = {
    "mlp4096": (mlp4096, (784,), 10, 128),
    "lstm512": (lambda: Recurrent(nn.LSTM), (64, 512), 10, 32),
    "gru512": (lambda: Recurrent(nn.GRU), (64, 512), 10, 32),
    "mlp2048": (mlp2048, (2048,), 10, 256),
    "resnet18": (resnet18, (3, 224, 224), 1000, 8),
    "resnet50": (resnet50, (3, 224, 224), 1000, 8),
    "inception_v3": (inception_v3, (3, 299, 299), 1000, 8),
    "densenet121": (densenet121, (3, 224, 224), 1000, 8),
    "vit_tiny": (vit_tiny, (3, 224, 224), 1000, 8),
    "vit_b16": (vit_b16, (3, 224, 224), 1000, 8),
    "convnext_tiny": (convnext_tiny, (3, 224, 224), 1000, 8),
    "efficientnet_b0": (efficientnet_b0, (3, 224, 224), 1000, 8),
    "mobilenet_v3_large": (mobilenet_v3_large, (3, 224, 224), 1000, 8),
    "unet": (lambda: UNet(21), (3, 128, 128), 21, 4),
    "dlrm": (lambda: Recommender(False), (39,), 2, 512),
    "dlrm_sparse": (lambda: Recommender(True), (39,), 2, 512),
    "gpt4": (gpt4, (128,), 50257, 4),
    "gpt12": (gpt12, (128,), 50257, 4),
    "gpt4_bytes": (gpt4_bytes, (128,), 256, 8),
    "bert4": (bert4, (128,), 10, 8),
}
# How many tokens there are, of models that read these. Of gpt4 the labels are the next tokens.
TOKENS = {"gpt4": 50257, "gpt12": 50257, "gpt4_bytes": 256, "bert4": 30522, "dlrm": Recommender.ROWS,
          "dlrm_sparse": Recommender.ROWS}
BY_PIXEL = {"unet"}  # a label for each
WITHOUT_MOMENTUM = {"dlrm_sparse"}  # PyTorch's SGD makes gradients of rows dense for it


def build(name):
    """The model in training mode, its initial parameters decided by SEED."""
    torch.manual_seed(SEED)
    return MODELS[name][0]().train()


def example_type(name):
    return torch.int64 if name in TOKENS else torch.float32


def data(name):
    """inputs, float32 or tokens, and labels int64 of BATCHES batches."""
    _, shape, classes, batch = MODELS[name]
    random = numpy.random.RandomState(SEED)
    count = BATCHES * batch * SCALE
    if name in TOKENS:
        tokens = random.randint(0, TOKENS[name], (count, shape[0] + 1)).astype(numpy.int64)
        if classes == TOKENS[name]:
            return tokens[:, :-1].copy(), tokens[:, 1:].copy()
        return tokens[:, :-1].copy(), random.randint(0, classes, count).astype(numpy.int64)
    inputs = random.standard_normal((count,) + shape).astype(numpy.float32)
    places = (count,) + shape[1:] if name in BY_PIXEL else (count,)
    return inputs, random.randint(0, classes, places).astype(numpy.int64)
