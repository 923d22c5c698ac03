"""Takes one panel out of a View that has several."""

import dataclasses

from theseus_track.errors import NotFound
from theseus_track.records import View
from theseus_track.records.strict_json import Json

__all__ = ["one_panel", "panel_names"]


def panel_names(view: View) -> list[str]:
    """Return the names of a View's panels; none when it is a single one."""
    known = view.labels.get("panels")
    texts = [_title(panel) for panel in known] if isinstance(known, list) else []
    if view.kind == "grid":
        return [text or str(number) for number, text in enumerate(texts)]
    values = view.arrays.get("values")
    if view.kind not in ("heatmap", "image_grid") or values is None or values.ndim < 3:
        return []
    names = dict(enumerate(texts))
    return [names.get(number) or str(number) for number in range(len(values))]


def one_panel(view: View, number: int) -> View:
    """Return a panel of a View as a View of its own; a single one as it is.

    Args:
        view: Any View.
        number: Which panel, >= 0.

    Raises:
        NotFound: When it has fewer panels.
    """
    names = panel_names(view)
    if not names:
        return view
    if number >= len(names):
        raise NotFound(f"It has {len(names)} panels; there is no number {number}.")
    if view.kind == "grid":
        prefix = f"{number}/"
        arrays = {
            role.removeprefix(prefix): array
            for role, array in view.arrays.items()
            if role.startswith(prefix)
        }
        return dataclasses.replace(view, kind="heatmap", arrays=arrays, labels={})
    arrays = {role: array[number] for role, array in view.arrays.items()}
    return dataclasses.replace(view, kind="heatmap", arrays=arrays)


def _title(panel: Json) -> str:
    if isinstance(panel, str):
        return panel
    labels = panel.get("labels") if isinstance(panel, dict) else None
    title = labels.get("title") if isinstance(labels, dict) else None
    return title if isinstance(title, str) else ""
