#!/usr/bin/env python3
"""Language models and recurrent networks, and what PyTorch makes of training them.

    make_sequence_references.py

Writes beside itself, of each model, NAME.pt2 as torch.export saves it; tokens.npy and labels.npy,
which all of them read; and losses.txt, a line a model: its name, and the losses of its steps in
float64, and in float32. Each step takes the next BATCH rows, over and over. Parameters begin as
multiples of 1/256, so that the files can be packed well. Made with PyTorch 2.15.
"""
import pathlib
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as f

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from exported_traces import shorten  # noqa: E402

ROWS, BATCH, STEPS, TIME, WORDS = 16, 4, 6, 16, 32


class Block(nn.Module):
    def __init__(self, width, heads, drops):
        super().__init__()
        self.heads, self.drops = heads, drops
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(drops)

    def forward(self, x):
        batch, time, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, 2)
        q, k, v = (p.view(batch, time, self.heads, -1).transpose(1, 2) for p in parts)
        y = f.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.drops)
        x = x + self.drop(self.proj(y.transpose(1, 2).reshape(batch, time, width)))
        return x + self.drop(self.down(f.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    def __init__(self, width, heads, drops=0.0):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(TIME, width)
        self.blocks = nn.ModuleList(Block(width, heads, drops) for _ in range(2))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)
        self.drop = nn.Dropout(drops)

    def forward(self, tokens):
        x = self.drop(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


class Recurrent(nn.Module):
    def __init__(self, kind, width, hidden, **options):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.net = kind(width, hidden, batch_first=True, **options)
        self.out = nn.Linear(hidden * (2 if options.get("bidirectional") else 1), WORDS)

    def forward(self, tokens):
        return self.out(self.net(self.words(tokens))[0])


MODELS = {  # "drops" has random numbers of PyTorch's own: it has no losses
    "gpt": lambda: Gpt(64, 4),
    "lstm": lambda: Recurrent(nn.LSTM, 32, 64),
    "gru": lambda: Recurrent(nn.GRU, 16, 24, num_layers=2, bidirectional=True),
    "drops": lambda: Gpt(16, 2, 0.2),
}


def losses(model, dtype, tokens, labels):
    model = model.to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    found = []
    for step in range(STEPS):
        rows = slice(step * BATCH % ROWS, step * BATCH % ROWS + BATCH)
        loss = f.cross_entropy(model(tokens[rows]).flatten(0, 1), labels[rows].flatten())
        found.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return found


def begin(make):
    torch.manual_seed(5)
    model = make().train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((parameter * 256).round() / 256)
    return model


def main():
    random = numpy.random.RandomState(3)
    tokens = random.randint(0, WORDS, (ROWS, TIME + 1))
    tokens[:, 1::2] = (tokens[:, :-1:2] * 3 + 1) % WORDS  # every other one can be told
    numpy.save(HERE / "tokens.npy", tokens[:, :-1])
    numpy.save(HERE / "labels.npy", tokens[:, 1:])
    tokens = torch.from_numpy(tokens)
    with open(HERE / "losses.txt", "w", encoding="ascii") as file:
        for name, make in MODELS.items():
            batch = {0: torch.export.Dim("batch")}
            exported = torch.export.export(begin(make), (tokens[:BATCH, :-1],),
                                           dynamic_shapes=(batch,))
            shorten(exported.graph_module)
            torch.export.save(exported, HERE / f"{name}.pt2")
            if name == "drops":
                continue
            numbers = [losses(begin(make), dtype, tokens[:, :-1], tokens[:, 1:])
                       for dtype in (torch.float64, torch.float32)]
            file.write(" ".join([name] + [f"{x:.12g}" for row in numbers for x in row]) + "\n")


if __name__ == "__main__":
    main()
