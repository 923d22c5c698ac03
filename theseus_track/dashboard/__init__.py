"""The dashboard: runs and results of ledgers, for a browser. Reads only, without JAX.

What comes in: the roots of ledgers, also other people's, whose content is not
trusted. What goes out: an ASGI application with pages of the runs and their values
as JSON. `docs/dashboard.md` lists the addresses.
"""

from theseus_track.dashboard.app import create_app
from theseus_track.dashboard.library import Library

__all__ = ["Library", "create_app"]
