"""Tells which runs changed, while they change, as server-sent events."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool

from theseus_track.dashboard.library import Library
from theseus_track.records import dumps

__all__ = ["changes"]

_PAUSE = 0.5
_SILENCE = 15.0


async def changes(
    library: Library,
    *,
    ending: Callable[[], bool] = lambda: False,
    pause: float = _PAUSE,
) -> AsyncIterator[str]:
    """Yield an event for each look that found something new.

    The first one names every run, so that nothing is missed between a page and its
    stream. A comment every 15 seconds keeps proxies from closing the stream.

    Args:
        library: The runs to watch.
        ending: Says whether to end; an open stream would keep a server from it.
        pause: Seconds between two looks.

    Yields:
        `data: {"runs": [KEY, ...], "gone": [KEY, ...], "indexing": {"done": N,
        "total": N}}` and an empty line.
    """
    before: dict[str, tuple[int, str]] = {}
    first, silent = True, 0.0
    while not ending():
        now = await run_in_threadpool(_look, library)
        changed = [key for key, seen in now.items() if before.get(key) != seen]
        gone = [key for key in before if key not in now]
        if changed or gone or first:
            told = {"runs": changed, "gone": gone, "indexing": library.indexing()}
            yield f"data: {dumps(told)}\n\n"
            silent = 0.0
        elif silent >= _SILENCE:
            yield ": still here\n\n"
            silent = 0.0
        before, first = now, False
        await asyncio.sleep(pause)
        silent += pause


def _look(library: Library) -> dict[str, tuple[int, str]]:
    return {
        key: (run.count, run.state) if run.complete else (-1, "")
        for key, run in library.runs().items()
    }
