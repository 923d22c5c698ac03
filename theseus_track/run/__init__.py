"""One handle that ties ledger, drawing and delivery to a training process.

What comes in: Values, metrics and host-side results, on the training thread. What
goes out: acknowledged records in the ledger, then figures, then items for the
sinks, all on background threads of rank 0. Nothing here issues a collective, and
nothing raises into the training loop unless `strict` asks for it.
"""

from theseus_track.run.handle import RunHandle
from theseus_track.run.open import open_run
from theseus_track.run.reopen import reopen_run
from theseus_track.run.report import CloseReport

__all__ = ["CloseReport", "RunHandle", "open_run", "reopen_run"]
