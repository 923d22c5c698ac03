"""Delivers what is on its way before a W&B run ends, whoever ends it."""

import atexit
import contextlib
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Farewell"]

# `with wandb.init() as run:` calls the second one only.
_WAYS = ("finish", "_finish")


class Farewell:
    """Stands before `run.finish` and before wandb's own handler at interpreter exit.

    Handlers at exit run in reverse: one registered after `wandb.init` comes first.
    """

    def __init__(
        self,
        run: Any,  # a wandb.Run
        *,
        before_finish: Callable[[], object],
        at_exit: Callable[[], object],
    ) -> None:
        """Take the places.

        Args:
            run: One that is not finished.
            before_finish: Called once, on the thread that finishes the run.
            at_exit: Called when the interpreter exits.
        """
        self._run = run
        self._before_finish = before_finish
        self._at_exit = at_exit
        self._once = threading.Lock()
        self._ours = {
            way: self._after(getattr(run, way)) for way in _WAYS if hasattr(run, way)
        }
        for way, finish in self._ours.items():
            setattr(run, way, finish)
        atexit.register(self._at_exit)

    def release(self) -> None:
        """Give the places back; what has been put over them since stays."""
        atexit.unregister(self._at_exit)
        for way, finish in self._ours.items():
            if vars(self._run).get(way) is finish:
                delattr(self._run, way)

    def _after(self, finish: Callable[..., Any]) -> Callable[..., Any]:
        def finish_after(*args: Any, **kwargs: Any) -> Any:
            # Held for ever: the two ways call each other, and one of them is enough.
            if self._once.acquire(blocking=False):
                # The user's run ends whatever happens to ours.
                with contextlib.suppress(Exception):
                    self._before_finish()
            return finish(*args, **kwargs)

        return finish_after
