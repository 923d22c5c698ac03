"""An isolated call as HTML, for a notebook cell."""

import html as escaping
import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from theseus_track.capture.isolated import Isolated

__all__ = ["html", "table"]

_PARTS = ("inputs", "output", "params", "state", "after")


def html(call: "Isolated") -> str:
    """Draw a call: with treescope where it is installed, else as a table."""
    if importlib.util.find_spec("treescope"):
        treescope = importlib.import_module("treescope")
        drawn: str = treescope.render_to_html(call.content)
        return f"<p><code>{escaping.escape(repr(call))}</code></p>{drawn}"
    return table(call)


def table(call: "Isolated") -> str:
    """Draw a call as a table of its arrays and their ranges."""
    rows = [_row(part, *pair) for part in _PARTS for pair in _leaves(call, part)]
    head = "".join(f"<th>{name}</th>" for name in ("", "name", "value", "range"))
    return (
        f"<p><code>{escaping.escape(repr(call))}</code></p>"
        f"<table><tr>{head}</tr>{''.join(rows)}</table>"
    )


def _leaves(call: "Isolated", part: str) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_flatten_with_path(call.content[part])[0]
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]


def _row(part: str, name: str, leaf: Any) -> str:
    is_array = isinstance(leaf, jax.Array | np.ndarray)
    value = f"{leaf.dtype}{list(leaf.shape)}" if is_array else repr(leaf)
    cells = (part, name, value, _range(leaf) if is_array else "")
    return f"<tr>{''.join(f'<td>{escaping.escape(x)}</td>' for x in cells)}</tr>"


def _range(leaf: Any) -> str:
    """Tell the least and the greatest number of an array that has numbers."""
    if isinstance(leaf, jax.core.Tracer) or not leaf.size:
        return ""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return ""
    return f"{leaf.min():.3g} to {leaf.max():.3g}"
