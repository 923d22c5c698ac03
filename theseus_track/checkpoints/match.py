"""Which stored leaf each wanted one is; what does not fit becomes a table."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from theseus_track.checkpoints.leaves import Leaf, Name
from theseus_track.errors import BadInput

__all__ = ["Difference", "Matched", "match", "table"]

Kind = Literal["missing", "extra", "shape", "dtype"]

# Copies of the parameters' names that no forward pass needs.
_OPTIMIZERS = {"opt", "opt_state", "optimizer", "optimizer_state", "tx"}
_SHOWN = 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One leaf in which a checkpoint and a model differ.

    Attributes:
        kind: `missing` in the checkpoint, `extra` in it, another `shape`, or another
            `dtype`, which is converted.
        name: Where the leaf is in the model, or, if extra, in the checkpoint.
        wanted: What the model has, as "float32[8, 4]"; "" if extra.
        stored: What the checkpoint has; "" if missing.
    """

    kind: Kind
    name: str
    wanted: str
    stored: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What belongs together.

    Attributes:
        pairs: Wanted name -> stored name, for all leaves that fit.
        differences: What does not fit, by name.
        ignored: The other entries of the checkpoint, one name for each subtree.
    """

    pairs: Mapping[Name, Name]
    differences: tuple[Difference, ...]
    ignored: tuple[str, ...]


def match(
    wanted: Mapping[Name, Leaf],
    stored: Mapping[Name, Leaf],
    take: Mapping[str, str] | None = None,
) -> Matched:
    """Find each wanted leaf among those stored.

    Args:
        wanted: The leaves of the model.
        stored: The leaves of the checkpoint.
        take: The first name of a wanted leaf -> where the checkpoint holds what is
            below it, such as {"params": "ema/params"}; "" is the whole checkpoint.
            A name that is not here is looked for.

    Raises:
        BadInput: When a name is at several places and `take` does not say which, or
            `take` names a place that is not there.
    """
    places = {top: _place(top, wanted, stored, take or {}) for top in _tops(wanted)}
    pairs: dict[Name, Name] = {}
    differences: list[Difference] = []
    for name, leaf in wanted.items():
        found = _same(places[name[0]] + name[1:], stored)
        if found is None:
            differences.append(_difference("missing", name, leaf, None))
            continue
        have = stored[found]
        if have.shape != leaf.shape:
            differences.append(_difference("shape", name, leaf, have))
        elif have.dtype != leaf.dtype:
            differences.append(_difference("dtype", name, leaf, have))
        pairs[name] = found
    used = set(pairs.values())
    inside = set(places.values())
    extra = [n for n in stored if n not in used and _under(n, inside)]
    differences += [_difference("extra", n, None, stored[n]) for n in extra]
    shaped = {d.name for d in differences if d.kind == "shape"}
    return Matched(
        pairs={n: s for n, s in pairs.items() if "/".join(n) not in shaped},
        differences=tuple(differences),
        ignored=_subtrees(n for n in stored if n not in used and n not in set(extra)),
    )


def table(differences: Sequence[Difference]) -> str:
    """Return the differences as lines, the first twenty of them in full."""
    head = ("", "LEAF", "MODEL", "CHECKPOINT")
    rows = [(d.kind, d.name, d.wanted or "-", d.stored or "-") for d in differences]
    shown = [head, *rows[:_SHOWN]]
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    lines = [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
    if len(rows) > _SHOWN:
        lines.append(f"... {len(rows)} in all")
    return "\n".join(lines)


def _tops(wanted: Mapping[Name, Leaf]) -> dict[str, None]:
    return dict.fromkeys(name[0] for name in wanted if name)


def _place(
    top: str,
    wanted: Mapping[Name, Leaf],
    stored: Mapping[Name, Leaf],
    take: Mapping[str, str],
) -> Name:
    """Return where the checkpoint holds what is below a first name."""
    if top in take:
        place = tuple(part for part in take[top].split("/") if part)
        if not any(name[: len(place)] == place for name in stored):
            raise BadInput(
                f"The checkpoint holds nothing at {take[top]!r}. It holds: "
                f"{', '.join(_subtrees(stored))}."
            )
        return place
    if any(name[0] == top for name in stored if name):
        return (top,)
    below = [name[1:] for name in wanted if name and name[0] == top]
    places = [
        place
        for place in _named(top, stored)
        if any(_same(place + name, stored) is not None for name in below)
    ]
    if len(places) > 1:
        listed = ", ".join(repr("/".join(place)) for place in places)
        raise BadInput(
            f"The checkpoint holds {top!r} at several places: {listed}. Say which one "
            f"by take={{{top!r}: ...}}."
        )
    if places:
        return places[0]
    # The checkpoint may be the parameters themselves.
    whole = any(name and _same(name, stored) is not None for name in below)
    return () if whole else (top,)


def _named(top: str, stored: Iterable[Name]) -> list[Name]:
    """Return the places of a name at any depth, but not in an optimizer's state."""
    places = {
        name[: depth + 1]
        for name in stored
        for depth, part in enumerate(name)
        if part == top and not _OPTIMIZERS & set(name[:depth])
    }
    return sorted(places)


def _same(name: Name, stored: Mapping[Name, Leaf]) -> Name | None:
    """Return the stored name: NNX saves a variable as such, or as its `value`."""
    candidates = [name, (*name, "value")]
    if name and name[-1] == "value":
        candidates.append(name[:-1])
    return next((one for one in candidates if one in stored), None)


def _under(name: Name, places: Iterable[Name]) -> bool:
    return any(name[: len(place)] == place for place in places)


def _subtrees(names: Iterable[Name]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name[0] for name in names if name))


def _difference(
    kind: Kind, name: Name, wanted: Leaf | None, stored: Leaf | None
) -> Difference:
    return Difference(
        kind=kind,
        name="/".join(name),
        wanted="" if wanted is None else str(wanted),
        stored="" if stored is None else str(stored),
    )
