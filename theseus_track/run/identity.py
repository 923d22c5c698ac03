"""Who a run is: its id, its name, and what its run.json tells of its making."""

import argparse
import importlib.metadata
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

from theseus_track.errors import BadInput
from theseus_track.records import RunInfo, to_json_value
from theseus_track.records.strict_json import Json

__all__ = ["config_json", "make_info"]

_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
_PACKAGES = (
    "theseus-track",
    "jax",
    "jaxlib",
    "flax",
    "optax",
    "orbax-checkpoint",
    "numpy",
)


def make_info(
    *,
    project: str,
    name: str | None,
    id: str | None,
    group: str | None,
    tags: Iterable[str],
    config: object,
    job: str | None,
    job_source: str | None,
    sinks: Mapping[str, Json],
    recipe: str | None,
    checkpoints: str | None,
) -> RunInfo:
    """Build a RunInfo, with a fresh id where none is given.

    Raises:
        BadInput: When a text is empty or a tag is no text.
    """
    made = id if id is not None else "".join(secrets.choice(_LETTERS) for _ in range(8))
    labels = (tags,) if isinstance(tags, str) else tuple(tags)
    for tag in labels:
        if not isinstance(tag, str):
            raise BadInput(f"The tag {tag!r} is no text. Give tags as texts.")
    return RunInfo(
        project=project,
        name=name if name is not None else f"run-{made}",
        id=made,
        created=time.time(),
        group=group,
        tags=labels,
        config=config_json(config),
        job=job,
        job_source=job_source,
        versions=_versions(),
        sinks=sinks,
        recipe=recipe,
        checkpoints=checkpoints,
    )


def config_json(config: object) -> dict[str, Json]:
    """Turn what people pass as a config into JSON.

    Args:
        config: A mapping, a dataclass, an argparse Namespace, or an object with
            `to_dict()` (ml_collections); None is empty. Leaves that JSON cannot
            hold (functions, classes) are kept as their text.

    Returns:
        A dict with text keys.

    Raises:
        BadInput: When it is none of these.
    """
    if config is None:
        return {}
    if isinstance(config, argparse.Namespace):
        config = vars(config)
    to_dict = getattr(config, "to_dict", None)
    if not isinstance(config, Mapping) and callable(to_dict):
        config = to_dict()
    value = _lenient(config)
    if isinstance(value, dict):
        return value
    raise BadInput(
        f"config={config!r:.80} is a {type(config).__name__}; give a dict, a "
        "dataclass or an argparse Namespace."
    )


def _lenient(value: Any) -> Json:
    if isinstance(value, Mapping):
        return {str(key): _lenient(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lenient(item) for item in value]
    try:
        return to_json_value(value)
    except BadInput:
        return repr(value)


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
