#!/usr/bin/env python3
"""Makes sequences.zip beside it, as make_cases.py makes operators.zip: what text models and recurrent nets are made of.

Needs PyTorch 2.15. Equal runs write equal numbers.
"""
import os
import zipfile

import torch
import torch.nn.functional as F
from torch import nn

import make_cases
from make_cases import Cases, draw, integers, save

FAMILIES = []


def family(function):
    FAMILIES.append(function)
    return function


@family
def product():
    tensors = {
        "x": draw(1, 3, 4), "y": draw(2, 4, 5), "batch": draw(3, 2, 3, 4), "other": draw(4, 2, 4, 3), "w": draw(5, 5, 4),
        "b": draw(6, 5), "row": draw(7, 4), "column": draw(8, 3), "sum": draw(9, 3, 5), "sums": draw(10, 2, 3, 3),
        "tensor": draw(11, 2, 4, 3), "experts": draw(12, 3, 8, 4), "rows": draw(13, 7, 8), "v": draw(14, 3, 2, 2),
        "g": draw(15, 3, 1, 1, low=0.5), "ends": torch.tensor([2, 2, 7], dtype=torch.int32),
    }
    calls = {
        "linear": lambda m: F.linear(m.x, m.w, m.b),
        "linear_of_batches": lambda m: F.linear(m.batch, m.w, m.b),
        "linear_without_bias": lambda m: F.linear(m.batch, m.w),
        "linear_of_a_row": lambda m: F.linear(m.row, m.w, m.b),
        "matmul": lambda m: m.x @ m.y,
        "matmul_batches": lambda m: m.batch @ m.other,
        "matmul_broadcast": lambda m: m.batch @ m.y,
        "matmul_vector": lambda m: m.batch @ m.row,
        "mm": lambda m: torch.mm(m.x, m.y),
        "bmm": lambda m: torch.bmm(m.batch, m.other),
        "mv": lambda m: torch.mv(m.x, m.row),
        "dot": lambda m: torch.dot(m.row, m.row),
        "addmm": lambda m: torch.addmm(m.sum, m.x, m.y),
        "addmm_scaled": lambda m: torch.addmm(m.b, m.x, m.y, beta=0.5, alpha=2),
        "baddbmm": lambda m: torch.baddbmm(m.sums, m.batch, m.other, beta=0.5, alpha=2),
        "baddbmm_alone": lambda m: torch.baddbmm(m.sums, m.batch, m.other, beta=0),
        "outer": lambda m: torch.outer(m.column, m.row),
        "einsum": lambda m: torch.einsum("bij,bjk->bki", m.batch, m.other),
        "einsum_ellipsis": lambda m: torch.einsum("...ij,kj->...ik", m.batch, m.w),
        "bilinear": lambda m: F.bilinear(m.batch, m.other.transpose(1, 2)[..., :3], m.tensor, m.b[:2]),
        "weight_norm": lambda m: torch._weight_norm(m.v, m.g, 0),
        "grouped": lambda m: torch._grouped_mm(m.rows, m.experts, offs=m.ends),
    }
    save("product", Cases(tensors, calls))


@family
def attention():
    q, k, v = draw(21, 2, 4, 5, 8), draw(22, 2, 4, 6, 8), draw(23, 2, 4, 6, 8)
    mask = torch.rand(2, 1, 5, 6, generator=torch.Generator().manual_seed(3)) > 0.4
    mask[..., 0] = True
    hidden = mask.clone()
    hidden[1, 0, 2] = False  # a row that sees nothing
    tensors = {"q": q, "k": k, "v": v, "few": draw(24, 2, 2, 6, 8), "bias": draw(25, 4, 5, 6), "mask": mask,
               "hidden": hidden, "square": draw(26, 2, 4, 5, 8)}
    attend = F.scaled_dot_product_attention
    calls = {
        "plain": lambda m: attend(m.q, m.k, m.v),
        "scaled": lambda m: attend(m.q, m.k, m.v, scale=0.3),
        "causal": lambda m: attend(m.q, m.square, m.square, is_causal=True),
        "causal_of_two_lengths": lambda m: attend(m.q, m.k, m.v, is_causal=True),
        "masked": lambda m: attend(m.q, m.k, m.v, attn_mask=m.mask),
        "rows_hidden": lambda m: attend(m.q, m.k, m.v, attn_mask=m.hidden),
        "added": lambda m: attend(m.q, m.k, m.v, attn_mask=m.bias),
        "grouped": lambda m: attend(m.q, m.few, m.few, enable_gqa=True),
        "three_dimensions": lambda m: attend(m.q[:, 0], m.k[:, 0], m.v[:, 0]),
        "other_depth": lambda m: attend(m.q, m.k, m.v[..., :3]),
    }
    save("attention", Cases(tensors, calls))


@family
def indexing():
    tensors = {
        "x": draw(31, 4, 5, 3), "w": draw(32, 7, 3), "flat": draw(33, 4, 5), "source": draw(34, 2, 5, 3), "few": draw(35, 2, 3),
        "i": torch.tensor([2, 0, 2, -1]), "j": torch.tensor([[1], [4]]), "k": torch.tensor([0, 3, 1, -2]),
        "places": integers(36, 4, 2, high=5), "words": integers(37, 2, 4, high=7), "mask": draw(38, 4, 5) > 0,
        "pair": torch.tensor([3, 1]), "buffer": integers(39, 4, 5), "values": draw(40, 4, 3), "ones": draw(41, 4, 2),
    }

    def put(m):
        y = m.x * 1
        y[m.i[:2], 1:3] = m.few[:, None, :]
        y[:, m.pair] += 1
        y[0, 0, 0] = 5.0
        return y

    calls = {
        "embedding": lambda m: F.embedding(m.words, m.w),
        "padding": lambda m: F.embedding(m.words, m.w, padding_idx=2),
        "index": lambda m: m.x[m.i],
        "index_second": lambda m: m.x[:, m.places],
        "index_pair": lambda m: m.x[m.i, m.k],
        "index_broadcast": lambda m: m.x[m.j - 1, m.k],
        "index_middle": lambda m: m.x[:, m.k, m.i[:1]],
        "index_apart": lambda m: m.x[m.i, :, m.k.clamp(0, 2)],
        "index_list": lambda m: m.x[:, [0, 3]],
        "index_all": lambda m: m.x[m.i, m.k, m.k.clamp(0, 2)],
        "select": lambda m: m.x.index_select(1, m.pair),
        "gather": lambda m: m.flat.gather(1, m.places),
        "take_along": lambda m: torch.take_along_dim(m.flat, m.places, dim=1),
        "scatter": lambda m: m.flat.scatter(1, m.pair[None].expand(4, 2), m.ones),
        "scatter_number": lambda m: m.flat.scatter(1, m.places, 0.5),
        "scatter_add": lambda m: m.flat.scatter_add(1, m.places, m.ones),
        "scatter_of_larger": lambda m: m.flat.scatter_add(1, m.places[:3, :1], m.ones.detach()),
        "scatter_reduce": lambda m: m.flat.scatter_reduce(1, m.places, m.ones, "sum"),
        "put": put,
        "put_added": lambda m: m.x.index_put((m.i, m.k), m.values, accumulate=True),
        "put_broadcast": lambda m: m.x.index_put((m.pair,), m.values[:1, None]),
        "put_mask": lambda m: m.x.index_put((m.mask,), torch.tensor(0.25)),
        "add": lambda m: m.x.index_add(1, m.pair, m.x[:, :2], alpha=0.5),
        "copy": lambda m: m.x.index_copy(0, m.pair, m.source),
        "masked_scatter": lambda m: m.flat.masked_scatter(m.mask, m.x),
        "integers": lambda m: m.buffer[m.i, m.k],
    }
    save("indexing", Cases(tensors, calls))


@family
def order():
    tensors = {"x": draw(51, 4, 6), "n": integers(52, 3, 8, high=6), "flags": draw(53, 4, 6) > 0, "bounds": draw(54, 5).sort()[0],
               "small": integers(55, 12, high=4)}
    calls = {
        "topk": lambda m: torch.topk(m.x, 2),
        "topk_least": lambda m: torch.topk(m.x, 3, 0, largest=False),
        "sort": lambda m: torch.sort(m.x),
        "sort_down": lambda m: torch.sort(m.x, 0, descending=True),
        "sort_equal": lambda m: torch.sort(m.n, dim=-1, stable=True),
        "sort_equal_down": lambda m: torch.sort(m.n, descending=True, stable=True),
        "argsort": lambda m: torch.argsort(m.x, 1),
        "argsort_equal": lambda m: torch.argsort(m.n, dim=1, stable=True),
        "histc": lambda m: torch.histc(m.small.float(), 4, 0, 3),
        "histc_apart": lambda m: torch.histc(m.x.detach(), 5, -1, 1),
        "one_hot": lambda m: F.one_hot(m.n, 7),
        "buckets": lambda m: torch.bucketize(m.x.detach(), m.bounds.detach()),
        "buckets_right": lambda m: torch.bucketize(m.n, torch.tensor([1, 3, 3, 5]), right=True),
        "cumsum": lambda m: m.x.cumsum(1),
        "cumsum_of_flags": lambda m: m.flags.cumsum(0),
        "diff": lambda m: m.x.diff(),
        "diff_twice": lambda m: m.x.diff(2, 0),
        "diff_whole": lambda m: m.x.diff(dim=1, prepend=m.x[:, :1], append=m.x[:, 2:4]),
        "diff_of_flags": lambda m: m.flags.diff(dim=1),
        "tril": lambda m: m.x.tril(-1),
        "triu": lambda m: m.x.triu(1),
        "triu_of_flags": lambda m: m.flags.triu(),
    }
    save("order", Cases(tensors, calls))


@family
def creation():
    tensors = {"x": draw(61, 2, 3), "n": integers(62, 2, 3)}

    def filled(m):
        y = torch.empty(2, 4)
        y[:, :3] = m.x
        y[:, 3].fill_(7)
        z = torch.zeros_like(m.x)
        z.copy_(m.x[0])
        return y, z

    calls = {
        "zeros": lambda m: torch.zeros(2, 3) + m.x,
        "ones": lambda m: torch.ones(2, 1, dtype=torch.int64) + m.n,
        "full": lambda m: torch.full((3,), 2.5) * m.x,
        "full_of_flags": lambda m: torch.full((2, 3), True),
        "likes": lambda m: (torch.ones_like(m.x) * m.x, torch.full_like(m.n, 3), torch.zeros_like(m.x, dtype=torch.int64)),
        "news": lambda m: (m.x.new_zeros(2), m.x.new_ones(2, 3) * m.x, m.x.new_full((2,), 4), m.n.new_ones(3)),
        "filled": filled,
        "arange": lambda m: (torch.arange(5), torch.arange(2, 9, 3), torch.arange(0, 1, 0.25), torch.arange(3.0)),
        "linspace": lambda m: torch.linspace(-1, 2, 5),
        "eye": lambda m: (torch.eye(3), torch.eye(2, 3) * m.x),
        "scalar": lambda m: torch.scalar_tensor(3.5) * m.x,
    }
    save("creation", Cases(tensors, calls))


@family
def recurrent():
    torch.manual_seed(7)
    layers = {
        "lstm": nn.LSTM(3, 4, 2), "lstm_both": nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
        "lstm_bare": nn.LSTM(3, 4, bias=False), "gru": nn.GRU(3, 4, 2, batch_first=True), "gru_both": nn.GRU(3, 4, bidirectional=True),
        "tanh": nn.RNN(3, 4, 2), "relu": nn.RNN(3, 4, nonlinearity="relu", batch_first=True, bidirectional=True),
        "lstm_cell": nn.LSTMCell(3, 4), "gru_cell": nn.GRUCell(3, 4), "tanh_cell": nn.RNNCell(3, 4), "relu_cell": nn.RNNCell(3, 4, nonlinearity="relu", bias=False),
    }
    tensors = {"x": draw(71, 5, 2, 3), "h": draw(72, 2, 2, 4), "c": draw(73, 2, 2, 4)}

    def flat(result):
        y, state = result
        return (y, *state) if isinstance(state, tuple) else (y, state)

    calls = {
        "lstm": lambda m: flat(m.lstm(m.x)),
        "lstm_states": lambda m: flat(m.lstm(m.x, (m.h, m.c))),
        "lstm_both": lambda m: flat(m.lstm_both(m.x)),
        "lstm_bare": lambda m: flat(m.lstm_bare(m.x)),
        "gru": lambda m: flat(m.gru(m.x)),
        "gru_both": lambda m: flat(m.gru_both(m.x, m.h)),
        "tanh": lambda m: flat(m.tanh(m.x, m.h)),
        "relu": lambda m: flat(m.relu(m.x)),
        "lstm_cell": lambda m: m.lstm_cell(m.x[0], (m.h[0], m.c[0])),
        "gru_cell": lambda m: m.gru_cell(m.x[0], m.h[0]),
        "tanh_cell": lambda m: m.tanh_cell(m.x[0], m.h[0]),
        "relu_cell": lambda m: m.relu_cell(m.x[0], m.h[0]),
    }
    class Recurrent(Cases):
        def forward(self):
            return super().forward()
    save("recurrent", Recurrent(tensors, calls, layers))


@family
def open_sequences():
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=3, max=64)
    tensors = {"w": draw(81, 4), "table": draw(82, 9, 4)}
    make = lambda b, n: {"words": draw(83, b, n, 4)}

    def heads(m, words):
        return (words * m.w).view(words.shape[0], words.shape[1], 2, 2).transpose(1, 2)

    def seen(m, words):
        places = torch.arange(words.shape[1])
        return F.scaled_dot_product_attention(heads(m, words), heads(m, words), heads(m, words),
                                              attn_mask=places[None, :] <= places[:, None])

    calls = {
        "causal": lambda m, words: F.scaled_dot_product_attention(heads(m, words), heads(m, words), heads(m, words), is_causal=True),
        "mask": seen,
        "merged": lambda m, words: seen(m, words).transpose(1, 2).reshape(words.shape[0], -1, 4),
        "positions": lambda m, words: words + m.table[torch.arange(words.shape[1])],
        "embedded": lambda m, words: words + F.embedding(torch.arange(words.shape[1]), m.table),
        "last": lambda m, words: (words * m.w)[torch.arange(words.shape[0]), torch.full((words.shape[0],), -1)],
        "full": lambda m, words: torch.full((words.shape[0], words.shape[1]), 2.0).unsqueeze(-1) * m.w,
        "zeros": lambda m, words: torch.zeros_like(words) + m.w,
        "sorted": lambda m, words: (words * m.w).sort(1)[0],
        "triangle": lambda m, words: torch.ones(words.shape[1], words.shape[1]).tril() @ (words * m.w),
    }
    class Open(Cases):
        def forward(self, words):
            return super().forward(words=words)
    save("open_sequences", Open(tensors, calls), make(3, 5), {"words": {0: batch, 1: length}}, make(4, 7))


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    for each in FAMILIES:
        each()
    path = os.path.join(make_cases.HERE, "sequences.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, data in make_cases.ENTRIES.items():
            whole.writestr(zipfile.ZipInfo(name, make_cases.DATE), data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
