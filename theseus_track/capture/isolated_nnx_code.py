"""NNX modules and variables as JSON, and back."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flax import nnx

from theseus_track.capture.isolate_nnx import FrozenNode
from theseus_track.errors import BadInput

if TYPE_CHECKING:
    from theseus_track.capture.isolated_code import Decoder, Encoder

__all__ = ["decode", "encode", "is_ours"]

# How NNX 0.12 marks which attributes hold arrays; all others of its own are made anew.
_NODES = "_pytree__nodes"
_OWN = "_pytree__"


def is_ours(value: object) -> bool:
    """Tell whether a value is written here."""
    return isinstance(value, nnx.Pytree | nnx.Variable | FrozenNode)


def encode(encoder: "Encoder", value: Any, place: str) -> dict[str, Any]:
    """Return the JSON of a graph node."""
    cls = f"{type(value).__module__}:{type(value).__qualname__}"
    if isinstance(value, FrozenNode):
        node = nnx.merge(value.graph, nnx.State(value.state), copy=True)
        return {"node": encoder.encode(node, place)}
    if isinstance(value, nnx.Variable):
        return {
            "variable": cls,
            "value": encoder.encode(value.get_raw_value(), place),
            "metadata": encoder.encode(dict(value.get_metadata()), place),
        }
    attributes = {
        name: {"init": True}
        if name.endswith("_init") and callable(held)
        else encoder.encode(held, f"{place}.{name}")
        for name, held in vars(value).items()
        if not name.startswith(_OWN)
    }
    nodes = {
        name: bool(is_data)
        for name, is_data in vars(value).get(_NODES, {}).items()
        if not name.startswith(_OWN)
    }
    return {"graph": cls, "attributes": attributes, "nodes": nodes}


def decode(decoder: "Decoder", code: Mapping[str, Any]) -> Any:
    """Return the graph node of a JSON."""
    if "node" in code:
        graph, held = nnx.split(decoder.decode(code["node"]), graph=True)
        return decoder.keep(code, FrozenNode(graph, nnx.to_pure_dict(held)))
    if "variable" in code:
        cls = decoder.imported(code["variable"], nnx.Variable)
        made = cls.from_metadata(
            decoder.decode(code["value"]), decoder.decode(code["metadata"])
        )
        return decoder.keep(code, made)
    if "graph" not in code:
        raise BadInput(f"{sorted(code)} is no value of an isolated call.")
    cls = decoder.imported(code["graph"], nnx.Pytree)
    module = decoder.keep(code, _blank(cls))
    for name, held in code["attributes"].items():
        vars(module)[name] = decoder.decode(held)
    vars(module)[_NODES] = _nodes(module, code["nodes"])
    return module


def _nodes(module: Any, nodes: Mapping[str, bool]) -> Any:
    known = vars(module).get(_NODES, {})
    return type(known)({**known, **nodes}) if known else dict(nodes)


def _blank(cls: type) -> Any:
    """Make an object of a class without running its `__init__`."""
    # Through a subclass, so that NNX sets up what it needs.
    blank: Any = type(cls)(cls.__name__, (cls,), {"__init__": lambda _self: None})()
    object.__setattr__(blank, "__class__", cls)
    return blank
