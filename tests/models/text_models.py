"""Transformers and recurrent networks, spelled as the widely used implementations export them."""
import math

import torch
from torch import nn

VOCABULARY, BATCH, LENGTH = 96, 4, 24


# ---- GPT-2: a Conv1D that is an addmm, a causal mask kept as a buffer, GELU by tanh

class Conv1D(nn.Module):
    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.05)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        size = x.size()[:-1] + (self.weight.size(1),)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size)


def gelu_new(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) *
                                       (x + 0.044715 * torch.pow(x, 3.0))))


class GptAttention(nn.Module):
    def __init__(self, width, heads, length, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.heads, self.width = heads, width
        self.register_buffer("bias", torch.tril(torch.ones(length, length, dtype=torch.bool))
                             .view(1, 1, length, length))
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.width // self.heads)).permute(0, 2, 1, 3)

    def forward(self, x):
        query, key, value = (self.split(part) for part in
                             self.c_attn(x).split(self.width, dim=2))
        scores = torch.matmul(query, key.transpose(-1, -2))
        scores = scores / torch.full([], value.size(-1) ** 0.5, dtype=scores.dtype)
        causal = self.bias[:, :, key.size(-2) - query.size(-2):key.size(-2), :key.size(-2)]
        least = torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype)
        scores = torch.where(causal, scores, least)
        weights = self.dropout(nn.functional.softmax(scores, dim=-1))
        mixed = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
        return self.dropout(self.c_proj(mixed.view(mixed.size()[:-2] + (self.width,))))


class GptBlock(nn.Module):
    def __init__(self, width, heads, length, dropout):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = GptAttention(width, heads, length, dropout)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = Conv1D(4 * width, width)
        self.c_proj = Conv1D(width, 4 * width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(gelu_new(self.c_fc(self.ln_2(x))))


class Gpt2(nn.Module):
    """The table of embeddings is the last layer's weight too."""

    def __init__(self, vocabulary=VOCABULARY, length=LENGTH, width=48, heads=4, layers=3,
                 dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(length, width)
        self.h = nn.ModuleList(GptBlock(width, heads, length, dropout) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        nn.init.normal_(self.wte.weight, std=0.1)
        nn.init.normal_(self.wpe.weight, std=0.1)

    def forward(self, tokens):
        positions = torch.arange(0, tokens.size(-1), dtype=torch.long).unsqueeze(0)
        x = self.drop(self.wte(tokens) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        return nn.functional.linear(self.ln_f(x), self.wte.weight)


# ---- LLaMA: RMS normalisation, rotary positions, grouped keys, SiLU gates

class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-6))


def rotate_half(x):
    a, b = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
    return torch.cat((-b, a), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self, width, heads, groups, length):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q_proj = nn.Linear(width, heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, groups * self.size, bias=False)
        self.v_proj = nn.Linear(width, groups * self.size, bias=False)
        self.o_proj = nn.Linear(heads * self.size, width, bias=False)
        rates = 1.0 / (10000 ** (torch.arange(0, self.size, 2).float() / self.size))
        angles = torch.outer(torch.arange(length).float(), rates)
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos()[None, None])
        self.register_buffer("sin", angles.sin()[None, None])

    def repeat(self, x):
        batch, groups, length, size = x.shape
        times = self.heads // groups
        return x[:, :, None].expand(batch, groups, times, length, size).reshape(
            batch, groups * times, length, size)

    def forward(self, x, mask):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        cos, sin = self.cos[:, :, :length], self.sin[:, :, :length]
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k, v = self.repeat(k), self.repeat(v)
        weights = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size) + mask
        weights = nn.functional.softmax(weights, dim=-1)
        mixed = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.o_proj(mixed.reshape(batch, length, self.heads * self.size))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, inner, length):
        super().__init__()
        self.input_layernorm = RmsNorm(width)
        self.self_attn = LlamaAttention(width, heads, groups, length)
        self.post_attention_layernorm = RmsNorm(width)
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x, mask):
        x = x + self.self_attn(self.input_layernorm(x), mask)
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(nn.functional.silu(self.gate_proj(y)) * self.up_proj(y))


class Llama(nn.Module):
    def __init__(self, vocabulary=VOCABULARY, length=LENGTH, width=48, heads=4, groups=2, inner=80,
                 layers=2):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads, groups, inner, length)
                                    for _ in range(layers))
        self.norm = RmsNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.embed_tokens.weight, std=0.5)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        length = tokens.shape[1]
        mask = torch.full((length, length), torch.finfo(x.dtype).min, dtype=x.dtype)
        mask = torch.triu(mask, diagonal=1)[None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


# ---- BERT: a mask of padding that is an input, segments, a pooled first token

class BertLayer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.dropout = nn.Dropout(dropout)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.dense = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.intermediate = nn.Linear(width, 4 * width)
        self.output = nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size) + mask
        mixed = torch.matmul(self.dropout(nn.functional.softmax(scores, dim=-1)), v)
        mixed = mixed.permute(0, 2, 1, 3).contiguous()
        x = self.norm1(self.dropout(self.dense(mixed.view(mixed.size()[:-2] + (-1,)))) + x)
        y = self.output(nn.functional.gelu(self.intermediate(x)))
        return self.norm2(self.dropout(y) + x)


class Bert(nn.Module):
    def __init__(self, vocabulary=VOCABULARY, length=LENGTH, width=48, heads=4, layers=2,
                 classes=3, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.word_embeddings = nn.Embedding(vocabulary, width, padding_idx=0)
        self.position_embeddings = nn.Embedding(length, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, heads, dropout) for _ in range(layers))
        self.pooler = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, tokens, attention_mask, segments):
        positions = torch.arange(tokens.size(1), dtype=torch.long).unsqueeze(0)
        x = (self.word_embeddings(tokens) + self.token_type_embeddings(segments) +
             self.position_embeddings(positions))
        x = self.dropout(self.norm(x))
        mask = (1.0 - attention_mask[:, None, None, :].to(dtype=x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


# ---- BART: heads within the batch in products, apart where masks are added; a bias of positions

class Bart(nn.Module):
    def __init__(self, width=48, heads=4, length=LENGTH, classes=3):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.table = nn.Embedding(VOCABULARY, width)
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.bias = nn.Parameter(torch.randn(1, heads, length, length) * 0.2)
        self.classifier = nn.Linear(width, classes)

    def split(self, x, batch):
        x = x.view(batch, -1, self.heads, self.size).transpose(1, 2).contiguous()
        return x.view(batch * self.heads, -1, self.size)

    def forward(self, tokens, attention_mask, segments):
        batch, length = tokens.shape
        x = self.table(tokens) + segments[..., None].to(self.bias.dtype)
        query, key, value, out = self.projections
        q = self.split(query(x) * self.size ** -0.5, batch)
        k, v = self.split(key(x), batch), self.split(value(x), batch)
        scores = torch.bmm(q, k.transpose(1, 2)).view(batch, self.heads, length, length)
        hidden = (1.0 - attention_mask[:, None, None, :].to(scores.dtype)) * -10000.0
        scores = (scores + self.bias + hidden).view(batch * self.heads, length, length)
        mixed = torch.bmm(nn.functional.softmax(scores, dim=-1), v)
        mixed = mixed.view(batch, self.heads, length, self.size).transpose(1, 2)
        return self.classifier((x + out(mixed.reshape(batch, length, -1))).mean(1))


class Encoder(nn.Module):
    """PyTorch's own encoder, whose attention packs the three projections."""

    def __init__(self, width=48, heads=4, classes=3):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, heads, 96, dropout=0.0, activation="gelu",
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.classifier = nn.Linear(width, classes)

    def forward(self, tokens):
        return self.classifier(self.encoder(self.table(tokens)).mean(1))


# ---- recurrent

class Recurrent(nn.Module):
    """A language model of two layers of `kind`."""

    def __init__(self, kind, width=40):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        self.cells = kind(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.cells(self.table(tokens))[0])


class Bidirectional(nn.Module):
    """Classifies by the last states of both directions."""

    def __init__(self, width=32, classes=3):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        self.cells = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, tokens):
        _, (state, _) = self.cells(self.table(tokens))
        return self.head(torch.cat((state[0], state[1]), dim=1))


class Experts(nn.Module):
    """Attention by einsum, two of four experts a token, and sums and samples along the sequence."""

    def __init__(self, width=32, heads=4, experts=4):
        super().__init__()
        size = width // heads
        self.table = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(16, width)
        self.query, self.key, self.value = (nn.Parameter(torch.randn(width, heads, size) * 0.2)
                                            for _ in range(3))
        self.out = nn.Parameter(torch.randn(heads, size, width) * 0.2)
        self.gate = nn.Linear(width, experts)
        self.expert = nn.Parameter(torch.randn(experts, width, width) * 0.2)
        self.head = nn.Linear(width, VOCABULARY)

    def attend(self, x):
        query, key, value = (torch.einsum("bld,dhk->blhk", x, weight)
                             for weight in (self.query, self.key, self.value))
        length = x.size(1)
        mask = torch.triu(torch.full((length, length), -1e9, dtype=x.dtype), diagonal=1)
        scores = torch.einsum("bqhk,bshk->bhqs", query, key) / math.sqrt(key.size(-1)) + mask
        mixed = torch.einsum("bhqs,bshk->bqhk", scores.softmax(-1), value)
        return torch.einsum("bqhk,hkd->bqd", mixed, self.out)

    def choose(self, x):
        logits = self.gate(x)
        best, chosen = torch.topk(logits, 2, dim=-1)
        gates = torch.zeros_like(logits).scatter(-1, chosen, best.softmax(-1))
        made = torch.relu(torch.einsum("bld,edf->blef", x, self.expert))
        picked = torch.gather(logits, -1, chosen[..., :1])
        return torch.einsum("blef,ble->blf", made, gates) * torch.sigmoid(picked)

    def forward(self, tokens):
        counts = torch.cumsum(torch.ones_like(tokens), dim=1)
        x = self.table(tokens) + self.places((counts - 1) % 16)
        x = x + self.attend(x)
        x = x + self.choose(x)
        x = x + torch.cumsum(x, dim=1) / counts.unsqueeze(-1).to(x.dtype)
        finer = nn.functional.interpolate(x.transpose(1, 2), scale_factor=2.0, mode="linear",
                                          align_corners=False)
        return self.head(nn.functional.avg_pool1d(finer, 2).transpose(1, 2))


# name: (constructor, classes of one label an example or None for a label a token, operator set)
MODELS = {
    "gpt2": (Gpt2, None, 15),
    "gpt2_17": (Gpt2, None, 17),
    "gpt2_dropout": (lambda: Gpt2(dropout=0.1), None, 15),
    "llama": (Llama, None, 15),
    "bert": (Bert, 3, 15),
    "bert17": (Bert, 3, 17),
    "bert_dropout": (lambda: Bert(dropout=0.1), 3, 15),
    "bart": (Bart, 3, 15),
    "encoder": (Encoder, 3, 15),
    "lstm": (lambda: Recurrent(nn.LSTM), None, 15),
    "gru": (lambda: Recurrent(nn.GRU), None, 15),
    "rnn": (lambda: Recurrent(nn.RNN), None, 15),
    "bidirectional": (Bidirectional, 3, 15),
    "experts": (Experts, None, 15),
}


def build(name, _draw):
    """(model, one batch of inputs as a dict, labels, operator set)"""
    constructor, classes, opset = MODELS[name]
    torch.manual_seed(5)
    model = constructor()
    generator = torch.Generator().manual_seed(6)
    tokens = torch.randint(1, VOCABULARY, (BATCH, LENGTH), generator=generator)
    inputs = {"tokens": tokens}
    if name.startswith("bert") or name == "bart":
        mask = torch.ones(BATCH, LENGTH, dtype=torch.long)
        mask[1, LENGTH - 7:] = 0
        mask[3, LENGTH - 2:] = 0
        segments = torch.zeros(BATCH, LENGTH, dtype=torch.long)
        segments[:, LENGTH // 2:] = 1
        inputs |= {"attention_mask": mask, "segments": segments}
    shape = (BATCH, LENGTH) if classes is None else (BATCH,)
    labels = torch.randint(0, classes or VOCABULARY, shape, generator=generator)
    return model, inputs, labels, opset
