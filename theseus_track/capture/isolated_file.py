"""An isolated call on disk: arrays in an npz file, all else in JSON beside it."""

import hashlib
import importlib
import json
import os
import platform
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np

from theseus_track.capture.isolate_linen import LinenFrame, ScopeFrame
from theseus_track.capture.isolated_code import Decoder, Encoder, name_of
from theseus_track.capture.origin import Frame, Origin
from theseus_track.errors import BadInput, NotFound

__all__ = ["Summary", "describe", "read", "write"]

_FORMAT = "theseus-track isolated call"
_SCHEMA = 1
_JSON, _ARRAYS = "isolated.json", "arrays.npz"
_PARTS = ("params", "state", "inputs", "output", "after")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a saved call is, read without the layer's class.

    Attributes:
        origin: Where the call comes from.
        versions: Of the packages that wrote it, by name.
        parts: By part ("params", "inputs", ...): each array's place, shape and dtype.
        sizes: Bytes of arrays by part; what two parts share counts in both.
        file_bytes: What the files take on disk.
    """

    origin: Origin
    versions: dict[str, str]
    parts: dict[str, dict[str, str]]
    sizes: dict[str, int]
    file_bytes: int


def write(
    origin: Origin,
    frame: Frame,
    content: Mapping[str, Any],
    directory: str | os.PathLike[str],
) -> Path:
    """Write a call to a directory; see `Isolated.save`."""
    target = Path(directory)
    if target.exists() and any(target.iterdir()):
        raise BadInput(f"{str(target)!r} is not empty; give another directory.")
    encoder = Encoder()
    layer = frame.open(content["params"], content["state"]).layer
    body = {
        "format": _FORMAT,
        "schema": _SCHEMA,
        "versions": _versions(),
        "origin": asdict(origin),
        "frame": _encoded_frame(encoder, frame, layer),
        "content": {part: encoder.encode(content[part], part) for part in _PARTS},
        "parts": {part: _listed(content[part]) for part in _PARTS},
        "dtypes": [array.dtype.name for array in encoder.arrays],
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        room = Path(scratch) / "new"
        room.mkdir()
        arrays = {str(i): _plain(array) for i, array in enumerate(encoder.arrays)}
        np.savez(room / _ARRAYS, **arrays)  # type: ignore[arg-type]
        body["arrays"] = _digest((room / _ARRAYS).read_bytes())
        text = json.dumps({"digest": _digest(_canonical(body)), "body": body}, indent=1)
        (room / _JSON).write_text(text, encoding="utf-8")
        if target.exists():
            target.rmdir()
        shutil.move(room, target)
    return target


def read(
    directory: str | os.PathLike[str],
) -> tuple[Origin, Frame, dict[str, Any]]:
    """Read what `write` wrote; see `load`."""
    body, arrays = _read(Path(directory))
    origin = _origin(body)
    try:
        decoder = Decoder(arrays, _class_in(body["frame"]))
        frame = _decoded_frame(decoder, body["frame"])
        content = {p: decoder.decode(body["content"][p]) for p in _PARTS}
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{str(directory)!r} does not fit the layer that it names, {origin.cls}: "
            f"{type(error).__name__}: {error}."
        ) from error
    return origin, frame, content


def describe(directory: str | os.PathLike[str]) -> Summary:
    """Say what a saved call is; no class is imported and nothing is computed.

    Raises:
        NotFound: When there is no such file.
        BadInput: When it is not one of ours, or was changed since.
    """
    place = Path(directory)
    body, arrays = _read(place)
    sizes = {
        part: sum(arrays[i].nbytes for i in set(_numbers(body["content"][part])))
        for part in _PARTS
    }
    return Summary(
        origin=_origin(body),
        versions=body["versions"],
        parts=body["parts"],
        sizes=sizes,
        file_bytes=sum((place / name).stat().st_size for name in (_JSON, _ARRAYS)),
    )


def _read(place: Path) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """Read both files; refuse what is not ours or was changed."""
    if not (place / _JSON).is_file() or not (place / _ARRAYS).is_file():
        raise NotFound(
            f"{str(place)!r} holds no isolated call: {_JSON} and {_ARRAYS} are needed."
        )
    try:
        whole = json.loads((place / _JSON).read_text(encoding="utf-8"))
        body, digest = whole["body"], whole["digest"]
        known = body["format"] == _FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{str(place / _JSON)!r} is not the JSON of an isolated call: {error}."
        ) from error
    if not known or body.get("schema") != _SCHEMA:
        raise BadInput(
            f"{str(place)!r} is of format {body['format']!r}, schema "
            f"{body.get('schema')!r}; this version reads {_FORMAT!r}, {_SCHEMA}."
        )
    raw = (place / _ARRAYS).read_bytes()
    for name, expected, actual in (
        (_JSON, digest, _digest(_canonical(body))),
        (_ARRAYS, body.get("arrays"), _digest(raw)),
    ):
        if expected != actual:
            raise BadInput(
                f"{str(place / name)!r} was changed since it was written: its digest "
                f"is {actual[:12]}, but {str(expected)[:12]} was noted. Save the call "
                "again."
            )
    try:
        with np.load(place / _ARRAYS, allow_pickle=False) as archive:
            arrays = [
                archive[str(i)].view(jnp.dtype(dtype))
                for i, dtype in enumerate(body["dtypes"])
            ]
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise BadInput(f"{str(place / _ARRAYS)!r} cannot be read: {error}.") from error
    return body, arrays


def _origin(body: dict[str, Any]) -> Origin:
    origin: dict[str, Any] = dict(body["origin"])
    for name in ("names", "index"):
        origin[name] = tuple(origin[name])
    return Origin(**origin)


def _encoded_frame(encoder: Encoder, frame: Frame, layer: Any) -> dict[str, Any]:
    if isinstance(frame, LinenFrame):
        scopes = [
            {
                "path": list(scope.path),
                "mutable": encoder.encode(scope.mutable, "mutable"),
                "flags": encoder.encode(dict(scope.flags), "flags"),
                "folds": encoder.encode(dict(scope.folds), "streams"),
            }
            for scope in frame.scopes
        ]
        modules = [encoder.encode(m, type(m).__name__) for m in frame.modules]
        return {"kind": "linen", "modules": modules, "scopes": scopes}
    # The arrays are those of the content; written as a module they would come twice.
    return {"kind": "nnx", "layer": encoder.encode(layer, name_of(type(layer)))}


def _decoded_frame(decoder: Decoder, code: dict[str, Any]) -> Any:
    if code["kind"] == "linen":
        modules = tuple(decoder.decode(module) for module in code["modules"])
        scopes = tuple(
            ScopeFrame(
                tuple(scope["path"]),
                decoder.decode(scope["mutable"]),
                decoder.decode(scope["flags"]),
                decoder.decode(scope["folds"]),
            )
            for scope in code["scopes"]
        )
        return LinenFrame(modules, scopes)
    from theseus_track.capture.isolate_nnx import NnxFrame  # noqa: PLC0415 - it imports flax.nnx

    return NnxFrame.of(decoder.decode(code["layer"]))


def _class_in(frame: dict[str, Any]) -> str:
    """Return where the layer's class is imported from."""
    reference: str = (
        frame["modules"][0]["linen"]
        if frame["kind"] == "linen"
        else frame["layer"]["graph"]
    )
    return reference


def _versions() -> dict[str, str]:
    # By its name: the root names every layer for type checkers, this one too, and an
    # import of it would close a circle.
    package = importlib.import_module("theseus_track")
    return {
        "python": platform.python_version(),
        **{one.__name__: one.__version__ for one in (package, jax, flax, np)},
    }


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """View a dtype that npz cannot name, such as bfloat16, as bytes of its size."""
    if array.dtype.kind in "biufc":
        return array
    return array.view(f"u{array.dtype.itemsize}")


def _listed(tree: Any) -> dict[str, str]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {
        jax.tree_util.keystr(path): f"{leaf.dtype}{list(leaf.shape)}"
        for path, leaf in leaves
        if isinstance(leaf, jax.Array | np.ndarray)
    }


def _numbers(code: Any) -> list[int]:
    """List the numbers of the arrays in a JSON."""
    if isinstance(code, dict):
        own = [code["array"]] if isinstance(code.get("array"), int) else []
        return own + [n for value in code.values() for n in _numbers(value)]
    if isinstance(code, list):
        return [number for value in code for number in _numbers(value)]
    return []


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _canonical(body: Any) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
