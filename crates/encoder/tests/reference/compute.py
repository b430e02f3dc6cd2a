"""Computes the reference vectors of `tiny.json` with NumPy, in 64 bits.

    python compute.py > tiny.json

The models are those that `tests/model/tiny_model.rs` writes: the same numbers come from the same
generator. Token ids are spelled out here, so that tokenizers are checked too.
"""

import json
import math

import numpy as np

HIDDEN, LAYERS, HEADS, FEED_FORWARD, VOCABULARY, POSITIONS, TYPES = 16, 2, 4, 32, 24, 20, 2


class Generator:
    """Knuth's linear congruential generator; numbers between -1 and 1."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 40) / 2**23 - 1.0

    def tensor(self, *shape, scale=1.0, around=0.0):
        numbers = [np.float32(around + scale * self.next()) for _ in range(math.prod(shape))]
        return np.array(numbers, dtype=np.float32).reshape(shape).astype(np.float64)


def model(seed):
    make = Generator(seed)
    norm = lambda: (make.tensor(HIDDEN, scale=0.1, around=1.0), make.tensor(HIDDEN, scale=0.1))
    linear = lambda out, into: (make.tensor(out, into, scale=0.5), make.tensor(out, scale=0.1))
    embeddings = [make.tensor(rows, HIDDEN) for rows in (VOCABULARY, POSITIONS, TYPES)]
    embeddings.append(norm())
    layers = []
    for _ in range(LAYERS):
        parts = [linear(HIDDEN, HIDDEN) for _ in range(4)] + [norm()]
        parts += [linear(FEED_FORWARD, HIDDEN), linear(HIDDEN, FEED_FORWARD), norm()]
        layers.append(parts)
    return embeddings, layers


def layer_norm(x, weights):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-12) * weights[0] + weights[1]


def dense(x, weights):
    return x @ weights[0].T + weights[1]


def encode(weights, tokens, first_position, pooling):
    (words, positions, types, norm), layers = weights
    x = words[tokens] + positions[first_position : first_position + len(tokens)] + types[0]
    x = layer_norm(x, norm)
    width = HIDDEN // HEADS
    erf = np.vectorize(math.erf)
    for query, key, value, output, attention_norm, wide, narrow, output_norm in layers:
        q, k, v = dense(x, query), dense(x, key), dense(x, value)
        heads = []
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            scores = q[:, part] @ k[:, part].T / math.sqrt(width)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(scores / scores.sum(-1, keepdims=True) @ v[:, part])
        x = layer_norm(x + dense(np.concatenate(heads, -1), output), attention_norm)
        inner = dense(x, wide)
        inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        x = layer_norm(x + dense(inner, narrow), output_norm)
    pooled = x.mean(0) if pooling == "mean" else x[0]
    return pooled / np.linalg.norm(pooled)


CASES = {
    # [CLS] 1, [SEP] 2, [UNK] 3; "query" 4, "passage" 5, ":" 6.
    "bert": (7, 0, "mean", [
        ("query", "Hello world", [1, 4, 6, 7, 8, 2]),
        ("passage", "Hello, Worlds 会!", [1, 5, 6, 7, 12, 8, 9, 10, 3, 2]),
        ("passage", "", [1, 5, 6, 2]),
        # 16 tokens at most.
        ("passage", "hello " * 40, [1, 5, 6] + [7] * 12 + [2]),
    ]),
    # <s> 0, </s> 2, <unk> 3; positions begin at 2.
    "xlm-roberta": (11, 2, "cls", [
        ("query", "hello world", [0, 4, 5, 6, 2]),
        ("passage", "ｈｅｌｌｏ  zz", [0, 4, 5, 7, 3, 2]),
    ]),
}

out = {}
for name, (seed, first_position, pooling, cases) in CASES.items():
    weights = model(seed)
    rows = []
    for kind, text, tokens in cases:
        vector = encode(weights, tokens, first_position, pooling)
        rows.append({"kind": kind, "text": text, "tokens": tokens, "vector": [round(x, 6) for x in vector.tolist()]})
    out[name] = rows
print(json.dumps(out, ensure_ascii=False, indent=1))
