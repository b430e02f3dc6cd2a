"""Writes a GGUF of a few kilobytes with random weights: a model that says nothing sensible, and says it in every way a real
one does. Needs the PyPI packages `gguf` and `numpy`."""

import sys

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, FEED, CONTEXT = 1, 32, 2, 64, 131072


def write(path):
    random = np.random.default_rng(7)
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("tiny")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(FEED)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_file_type(gguf.LlamaFileType.ALL_F32)

    # A vocabulary of bytes and of printable letters, so that answers are text.
    letters = [chr(code) for code in range(33, 127)] + ["\u2581"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + letters
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(letters)
    out.add_tokenizer_model("llama")
    out.add_token_list(tokens)
    out.add_token_scores([0.0] * 259 + [-1.0] * len(letters))
    out.add_token_types(kinds)
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_unk_token_id(0)
    out.add_vocab_size(len(tokens))

    def add(name, *shape):
        out.add_tensor(name, (random.standard_normal(shape) * 0.1).astype(np.float32))

    def ones(name, *shape):
        out.add_tensor(name, np.ones(shape, dtype=np.float32))

    add("token_embd.weight", len(tokens), WIDTH)
    ones("output_norm.weight", WIDTH)
    # Letters are likelier than bytes, the end of the text is unlikely.
    head = (random.standard_normal((len(tokens), WIDTH)) * 0.1).astype(np.float32)
    head[259:] *= 20
    out.add_tensor("output.weight", head)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        ones(block + "attn_norm.weight", WIDTH)
        ones(block + "ffn_norm.weight", WIDTH)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"{block}{name}.weight", WIDTH, WIDTH)
        add(block + "ffn_gate.weight", FEED, WIDTH)
        add(block + "ffn_up.weight", FEED, WIDTH)
        add(block + "ffn_down.weight", WIDTH, FEED)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    write(sys.argv[1])
