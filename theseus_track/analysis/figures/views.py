"""Pack several Views into one of kind "grid", and unpack them."""

from collections.abc import Mapping, Sequence
from typing import Any

from theseus_track.errors import BadInput
from theseus_track.records import View

__all__ = ["join_views", "split_view"]


def join_views(
    panels: Sequence[View],
    *,
    labels: Mapping[str, Any],
    scale: Mapping[str, Any],
    caption: str,
) -> View:
    """Return the View of a figure whose panels are Views.

    Args:
        panels: One or more, in reading order, each with its name as `title`.
        labels: `title`, `x`, `y` and `notes` of the whole.
        scale: `cols`, `share` and `theme` of the whole.
        caption: One line on the whole.

    Returns:
        A View of kind "grid": the array `values` of the second panel is `1/values`,
        and `labels["panels"]` holds the rest of each.
    """
    rest = [
        {
            "kind": panel.kind,
            "labels": dict(panel.labels),
            "ticks": {axis: list(texts) for axis, texts in panel.ticks.items()},
            "scale": dict(panel.scale),
            "caption": panel.caption,
        }
        for panel in panels
    ]
    return View(
        kind="grid",
        arrays={
            f"{index}/{role}": array
            for index, panel in enumerate(panels)
            for role, array in panel.arrays.items()
        },
        labels={**labels, "panels": rest},  # type: ignore[dict-item]
        scale=dict(scale),
        caption=caption,
    )


def split_view(view: View) -> list[View]:
    """Return the panels of a View of kind "grid".

    Raises:
        BadInput: When the View says nothing of its panels.
    """
    panels: Any = view.labels.get("panels")
    if not isinstance(panels, list) or not panels:
        raise BadInput("This grid View has no panels in labels['panels'].")
    return [
        View(
            kind=panel["kind"],
            arrays={
                name.partition("/")[2]: array
                for name, array in view.arrays.items()
                if name.partition("/")[0] == str(index)
            },
            labels=panel["labels"],
            ticks=panel["ticks"],
            scale=panel["scale"],
            caption=panel["caption"],
        )
        for index, panel in enumerate(panels)
    ]
