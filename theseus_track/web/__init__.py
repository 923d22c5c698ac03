"""What every local page of ours shares: who may ask, and what an answer may do.

What comes in: any request, also a hostile one. What goes out: only requests of a
browser that was given the link, for a host that we serve, which read; each answer
with headers that keep its content from running scripts or loading anything.
"""

from theseus_track.web.door import Door
from theseus_track.web.guard import Guard
from theseus_track.web.static import static_routes

__all__ = ["Door", "Guard", "static_routes"]
