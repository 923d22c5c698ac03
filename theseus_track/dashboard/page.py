"""The pages: what `ui/` was built into, which the package ships."""

import importlib.resources

from starlette.routing import Route

from theseus_track.web import static_routes

__all__ = ["page_routes"]


def page_routes() -> list[Route]:
    """Return the routes of the first page, its script and its style."""
    return static_routes(importlib.resources.files(__package__) / "static")
