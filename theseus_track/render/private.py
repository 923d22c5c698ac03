"""Give a thread its own pyplot: own figures, own current figure, own rcParams.

pyplot keeps its state in three places of the process: the table of open figures
`matplotlib._pylab_helpers.Gcf.figs`, the backend behind `pyplot._get_backend_mod`,
and `matplotlib.rcParams`. While a thread is inside `private_pyplot`, each of them is
replaced by one that looks at the calling thread: such a thread sees its own, every
other thread sees what it always saw. `tests/render/test_private.py` pins these names
for the installed matplotlib.
"""

import contextlib
import functools
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping, ValuesView
from types import ModuleType
from typing import Any

__all__ = ["private_pyplot"]


_BACKEND_FUNCTIONS = ("_get_backend_mod", "switch_backend")


class _Private:
    """What one thread has instead of the process' pyplot state."""

    def __init__(self, outer: "_Private | None") -> None:
        self.figures: OrderedDict[Any, Any] = OrderedDict()
        self.settings: dict[str, Any] = {} if outer is None else {**outer.settings}


_current = threading.local()
_lock = threading.Lock()
_inside = 0
"""How many threads are inside; the dispatch is in place while it is above 0."""


@contextlib.contextmanager
def private_pyplot() -> Iterator[None]:
    """Make pyplot private to the calling thread.

    Inside, `sns.heatmap(values)` and `plt.subplots()` make Agg figures that no other
    thread sees, whatever the backend, and changes of rcParams (`sns.set_theme()`)
    are seen by this thread alone. On exit all that was opened inside is closed; the
    figures themselves stay valid and can be saved. May be nested: an inner context
    begins without figures and with the outer one's rcParams.
    """
    outer: _Private | None = getattr(_current, "private", None)
    _enter()
    _current.private = _Private(outer)
    try:
        yield
    finally:
        _close_figures()
        _current.private = outer
        _leave()


class _Figures(MutableMapping[Any, Any]):
    """`Gcf.figs`, looked up by the calling thread."""

    def __init__(self, shared: "OrderedDict[Any, Any]") -> None:
        self.shared = shared

    def _table(self) -> "OrderedDict[Any, Any]":
        private = getattr(_current, "private", None)
        if not isinstance(private, _Private):
            return self.shared
        # pyplot looks here before it makes a figure, so this is early enough, also
        # when pyplot was first imported by the plot function itself.
        _guard_backend()
        return private.figures

    def __getitem__(self, number: Any) -> Any:
        return self._table()[number]

    def __setitem__(self, number: Any, manager: Any) -> None:
        self._table()[number] = manager

    def __delitem__(self, number: Any) -> None:
        del self._table()[number]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table())

    def __len__(self) -> int:
        return len(self._table())

    def values(self) -> ValuesView[Any]:
        """Return the table's own view: pyplot reverses it."""
        return self._table().values()

    def move_to_end(self, number: Any, last: bool = True) -> None:
        """Make a figure the current one, as OrderedDict does."""
        self._table().move_to_end(number, last)


@functools.cache
def _thread_settings() -> type:
    """Return RcParams with the reads and writes of private threads kept apart."""
    matplotlib, _ = _shared_state()

    class ThreadRcParams(matplotlib.RcParams):  # type: ignore[misc, name-defined]
        """`matplotlib.rcParams`, looked up by the calling thread."""

        def _get(self, key: str) -> Any:
            own = _own_settings(self)
            return own[key] if own and key in own else super()._get(key)

        def _set(self, key: str, value: Any) -> None:
            own = _own_settings(self)
            if own is None:
                super()._set(key, value)
            else:
                own[key] = value

        def _update_raw(self, other: Any) -> None:
            for key, value in dict(other).items():
                self._set(key, value)

    def _own_settings(params: object) -> dict[str, Any] | None:
        private = getattr(_current, "private", None)
        # Copies, such as those of rc_context, are plain dictionaries of their own.
        if isinstance(private, _Private) and params is matplotlib.rcParams:
            return private.settings
        return None

    return ThreadRcParams


def _enter() -> None:
    matplotlib, table = _shared_state()
    global _inside  # noqa: PLW0603 (the process has one pyplot)
    with _lock:
        if _inside == 0:
            table.figs = _Figures(table.figs)
            matplotlib.rcParams.__class__ = _thread_settings()
        _inside += 1


def _leave() -> None:
    matplotlib, table = _shared_state()
    global _inside  # noqa: PLW0603 (the process has one pyplot)
    with _lock:
        _inside -= 1
        if _inside == 0:
            # A thread that still holds the dispatching table reaches the same
            # figures through it, so taking it away disturbs nobody.
            table.figs = table.figs.shared
            matplotlib.rcParams.__class__ = matplotlib.RcParams
            _release_backend()


def _shared_state() -> tuple[Any, Any]:
    """Return matplotlib and `Gcf`; untyped, for they are given other attributes."""
    import matplotlib
    from matplotlib._pylab_helpers import Gcf

    return matplotlib, Gcf


def _close_figures() -> None:
    _shared_state()[1].destroy_all()


def _guard_backend() -> None:
    """Let pyplot make Agg figures in private threads, without selecting a backend."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    with _lock:
        # A pyplot that is still being imported has no backend function yet.
        if pyplot is not None and _is_ready(pyplot):
            _replace(pyplot, "_get_backend_mod", _agg_backend)
            _replace(pyplot, "switch_backend", _keep_backend)


def _is_ready(pyplot: ModuleType) -> bool:
    """Say whether pyplot is imported so far, and not guarded yet."""
    if not all(hasattr(pyplot, name) for name in _BACKEND_FUNCTIONS):
        return False
    return not hasattr(getattr(pyplot, _BACKEND_FUNCTIONS[0]), "theseus_original")


def _replace(pyplot: ModuleType, name: str, private: Callable[..., Any]) -> None:
    original = getattr(pyplot, name)

    @functools.wraps(original)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        inside = getattr(_current, "private", None) is not None
        return private(*args, **kwargs) if inside else original(*args, **kwargs)

    dispatch.theseus_original = original  # type: ignore[attr-defined]
    setattr(pyplot, name, dispatch)


def _release_backend() -> None:
    pyplot = sys.modules.get("matplotlib.pyplot")
    for name in _BACKEND_FUNCTIONS:
        dispatch = getattr(pyplot, name, None)
        original = getattr(dispatch, "theseus_original", None)
        if original is not None:
            setattr(pyplot, name, original)


def _keep_backend(newbackend: str) -> None:
    """Ignore a wish for another backend: it would change everybody's."""


@functools.cache
def _agg_backend() -> type:
    from matplotlib.backends.backend_agg import _BackendAgg

    class PrivateAgg(_BackendAgg):
        """Agg, in which `plt.show()` and `plt.draw()` do nothing."""

        @classmethod
        def draw_if_interactive(cls) -> None:
            """Draw nothing: nobody looks at this figure on a screen."""

        @classmethod
        def show(cls, *, block: bool | None = None) -> None:
            """Show nothing: nobody looks at this figure on a screen."""

    return PrivateAgg
