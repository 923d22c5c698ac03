"""Turning what a site's `select` returns into paths, or into one clear fault."""

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from theseus_track.capture.discover import Discovery, Stacks
from theseus_track.capture.paths import CALL, Layers, Path
from theseus_track.capture.sites import Fault, Site, describe_target
from theseus_track.errors import (
    AnalysisFault,
    BadInput,
    UnreachedCall,
    UnsupportedProgram,
    describe_unknown,
)

__all__ = ["Choice", "check_layers", "choose", "one_line", "wanted_layers"]


@dataclass(frozen=True)
class Choice:
    """What one site looks at: the paths there are, those chosen, or why none.

    `single` says that one path was chosen by its text, not as one of several.
    """

    paths: tuple[str, ...]
    selected: tuple[str, ...] = ()
    fault: Fault | None = None
    single: bool = False


def choose(name: str, site: Site, discovery: Discovery) -> Choice:
    """Ask a site which of its target's calls it wants."""
    paths = tuple(discovery.calls[name])
    if not paths:
        return Choice((), fault=_nothing(name, site, discovery))
    try:
        chosen = site.select(list(paths))
        selected = _normalised(chosen, paths, discovery.stacks[name])
    except Exception as error:  # noqa: BLE001 - one site's fault must not stop the rest
        target = describe_target(site.target)
        message = f"{name!r} selects no call of {target}: {one_line(error)}"
        text = "" if isinstance(error, BadInput) else trace_text(error)
        return Choice(paths, fault=Fault("select", message, text))
    for path in selected:
        stacked = str(Path.parse(path).stacked)
        if blocker := discovery.blocked[name].get(stacked):
            cls = discovery.calls[name][stacked].cls.rpartition(".")[2]
            message = (
                f"{name!r}: the call {path!r} ({cls}) sits inside {blocker}, "
                "which can hand no value out; select another call."
            )
            fault = Fault("trace", message, error=UnsupportedProgram)
            return Choice(paths, selected, fault)
    return Choice(paths, selected, single=isinstance(chosen, str))


def one_line(error: BaseException) -> str:
    """Say in one line what an exception says; ours without their class."""
    first = next(iter(str(error).strip().splitlines()), "")
    if isinstance(error, BadInput):
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def trace_text(error: BaseException) -> str:
    """Return an exception's traceback as text: the object would hold tracers."""
    return "".join(traceback.format_exception(error))


def _normalised(
    chosen: object, paths: tuple[str, ...], stacks: Mapping[str, Stacks]
) -> tuple[str, ...]:
    hint = "select must return one of the paths it is given, or several of them"
    if not isinstance(chosen, Iterable):
        raise BadInput(f"{hint}, not {chosen!r}.")
    items = [chosen] if isinstance(chosen, str) else list(chosen)
    if not items:
        raise BadInput(f"{hint}, not nothing.")
    for item in items:
        if not isinstance(item, str):
            raise BadInput(f"{hint}; {item!r} is no path.")
    return tuple(dict.fromkeys(_known(item, paths, stacks) for item in items))


def _known(text: str, paths: tuple[str, ...], stacks: Mapping[str, Stacks]) -> str:
    try:
        path = Path.parse(text)
    except BadInput:
        raise BadInput(describe_unknown("path", text, paths)) from None
    stacked = str(path.stacked)
    if stacked not in paths:
        raise BadInput(describe_unknown("path", text, paths))
    check_layers(path, stacks[stacked])
    return str(path)


def check_layers(path: Path, stacks: Stacks) -> None:
    """Refuse layers that there are not around a call.

    Raises:
        BadInput: Which says what there is.
    """
    text = str(path)
    lengths = {depth: length for depth, length in stacks if depth is not None}
    for depth, layers in enumerate(path.layers, start=1):
        if layers is None:
            continue
        name = "/".join(path.names[:depth])
        if depth not in lengths:
            stacked_names = ["/".join(path.names[:each]) for each in sorted(lengths)]
            raise BadInput(
                f"{text!r} asks for layers of {name!r}, which is no scanned stack; "
                f"around this call there are: {', '.join(stacked_names) or 'none'}."
            )
        last = layers if isinstance(layers, int) else layers.stop - 1
        if last >= lengths[depth]:
            raise BadInput(
                f"{text!r} asks for layer {last}, but {name!r} has {lengths[depth]} "
                f"layers, 0 to {lengths[depth] - 1}."
            )


def wanted_layers(path: Path, stacks: Stacks) -> tuple[Layers, ...]:
    """Say for each scan around a call which iterations a path means.

    Returns:
        None for all of a scan; nothing at all where the path names no layers.
    """
    if not path.layers:
        return ()
    wanted = (None, *path.layers)
    return tuple(wanted[depth or 0] for depth, _ in stacks)


def _nothing(name: str, site: Site, discovery: Discovery) -> Fault:
    if error := discovery.broken.get(name):
        message = f"{name!r}: its target cannot be asked: {one_line(error)}"
        return Fault("select", message, trace_text(error), AnalysisFault)
    target = describe_target(site.target)
    if mute := discovery.mute[name]:
        message = (
            f"{name!r}: no call of {target} returns an array: {', '.join(mute)}. "
            "Values can only be taken where arrays come out; look at another module."
        )
        return Fault("select", message, error=UnreachedCall)
    plain = site.methods == (CALL,)
    methods = "" if plain else f" (methods {', '.join(site.methods)})"
    called = ", ".join(discovery.called) or "no module at all"
    message = (
        f"{name!r}: no call of {target}{methods} found; called: {called}. "
        f"Check {'TARGET' if plain else 'TARGET and METHODS'}."
    )
    return Fault("select", message, error=UnreachedCall)
