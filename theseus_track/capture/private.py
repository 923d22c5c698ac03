"""A private trace: interceptors on, and JAX's trace caches told so."""

import contextlib
import itertools
from collections.abc import Iterator

import jax

from theseus_track.capture import linen
from theseus_track.capture.frameworks import nnx_in_use
from theseus_track.capture.marked import NamesOf, Running
from theseus_track.capture.observer import Observer
from theseus_track.capture.sowing import showing

__all__ = ["private_trace"]

# JAX keeps what it traced, and does not know that an interceptor took part. Under a
# value of this context it keeps a separate set: otherwise a body that we
# instrumented would be handed to the user's own call, or an old one to ours.
_context = jax.make_user_context(None)


@contextlib.contextmanager
def private_trace(
    owner: object, observer: Observer, *, apart: bool = False
) -> Iterator[None]:
    """Show an observer every module call of the traces made inside.

    Args:
        owner: Hashable; traces made under an equal one are shared, so it must stand
            for everything that the observer does.
        observer: Sees the calls.
        apart: After each module call, share no more traces with what came before.
            Flax jits a class once for all of its instances; only so do they get
            separate paths. The owner must then be fresh.

    Yields:
        Nothing.
    """
    outer = _context.value
    with contextlib.ExitStack() as stack:
        stack.enter_context(_context((outer, owner)))
        numbers = itertools.count()

        def passed() -> None:
            if apart:
                stack.enter_context(_context((outer, owner, next(numbers))))

        running = Running(observer)
        stack.enter_context(linen.intercept(observer, passed, running))
        modules: list[tuple[type, NamesOf]] = [linen.SOWING]
        if nnx_in_use():
            from theseus_track.capture import nnx  # noqa: PLC0415 - it imports flax.nnx

            stack.enter_context(nnx.intercept(observer, passed, running))
            modules.append(nnx.SOWING)
        stack.enter_context(showing(running, modules))
        yield
