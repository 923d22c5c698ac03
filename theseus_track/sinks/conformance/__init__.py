"""The suite that every sink passes, ours and those of other packages.

Subclass `SinkConformance` in a test module, give it a sink and a way to read back
what the tracker shows, and let pytest collect it:

    class TestMySink(SinkConformance):
        @pytest.fixture(autouse=True)
        def _place(self, tmp_path):
            self.place = tmp_path

        def make(self):
            return MySink(self.place)

        def shown(self):
            return [Shown(...) for ... in my_tracker.read(self.place)]

The cases are what trackers got wrong in practice. Each makes its own items,
delivers them as the package does, closes, and compares all that is shown.
"""

from theseus_track.sinks.conformance.items import Items, tiny_png, wall_time
from theseus_track.sinks.conformance.shown import Shown
from theseus_track.sinks.conformance.suite import SinkConformance

__all__ = ["Items", "Shown", "SinkConformance", "tiny_png", "wall_time"]
