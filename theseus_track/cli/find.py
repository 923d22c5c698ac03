"""`theseus-track find JOB`: the modules of a model, as paths to select from."""

from typing import TYPE_CHECKING, Any

import click

from theseus_track.cli.options import json_option

if TYPE_CHECKING:
    from rich.tree import Tree

    from theseus_track.capture import Call
    from theseus_track.jobs import ModuleOutline

__all__ = ["command"]


@click.command()
@click.argument("job")
@click.option(
    "--class",
    "cls",
    metavar="CLASS",
    help="Only modules of this class or a subclass of it, as a TARGET would find them.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    default=("__call__",),
    show_default=True,
    metavar="NAME",
    help="Count calls of this method; may be repeated.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a hyperparameter, such as layers=32; may be repeated.",
)
@click.option(
    "--shapes", is_flag=True, help="Also shapes and dtypes of inputs and outputs."
)
@json_option
def command(
    job: str,
    cls: str | None,
    methods: tuple[str, ...],
    settings: tuple[str, ...],
    shapes: bool,
    as_json: bool,
) -> None:
    """Show the modules that a JOB calls: paths, classes, parameters, calls.

    JOB is a registered key, module:Class or file.py:Class of a Trainer, or a recipe,
    file.py:OBJECT. Nothing is computed and no parameter is allocated, so that a model
    of any size is shown on any machine. The paths are those that `select` chooses
    from; one layer of a scanned stack is written as blocks[3]/attn.
    """
    import theseus_track.demo  # noqa: F401 (registers its jobs)
    from theseus_track.cli.output import print_json, print_tree
    from theseus_track.jobs import forward_of, outline

    found = outline(forward_of(job, settings), cls=cls, methods=methods)
    if as_json:
        print_json([module.to_json() for module in found])
        return
    print_tree(_tree(found, shapes=shapes))


def _tree(modules: "list[ModuleOutline]", *, shapes: bool) -> "Tree":
    """Put each module under the one that contains it, a class filter's gaps filled."""
    from rich.tree import Tree

    from theseus_track.capture import Path

    shown = {Path.parse(module.path).names: module for module in modules}
    nodes: dict[tuple[str, ...], Tree] = {}

    def node(names: tuple[str, ...]) -> Tree:
        if names not in nodes:
            module = shown.get(names)
            label = str(Path(names)) or "(root)"
            text = label if module is None else _described(label, module, shapes)
            above = node(names[:-1]) if names else None
            nodes[names] = Tree(text) if above is None else above.add(text)
        return nodes[names]

    for names in shown:
        node(names)
    return node(())


def _described(label: str, module: "ModuleOutline", shapes: bool) -> str:
    parts = [f"{label}  {module.cls.rpartition('.')[2]}"]
    if module.layers is not None:
        parts.append(f"each: {module.layers}")
    if module.parameters:
        plural = "" if module.parameters == 1 else "s"
        parts.append(f"{module.parameters:,} parameter{plural}")
    if len(module.calls) > 1 and not shapes:
        parts.append(f"{len(module.calls)} calls")
    lines = ["  ".join(parts)]
    if shapes:
        lines += [
            _shapes(call, named=call.path != module.path) for call in module.calls
        ]
    return "\n".join(lines)


def _shapes(call: "Call", *, named: bool) -> str:
    inputs = [
        f"{name} {text}"
        for name, value in call.inputs.items()
        if (text := _spec(value))
    ]
    name = f"{call.path}: " if named else ""
    loops = f", for each of {' x '.join(call.axes)}" if call.axes else ""
    return f"  {name}{', '.join(inputs) or 'no arrays'} -> {_spec(call.output)}{loops}"


def _spec(tree: Any) -> str:
    """Return shapes and dtypes as text, "" where there is no array."""
    import jax

    found = [
        (jax.tree_util.keystr(path), f"{leaf.dtype}{list(leaf.shape)}")
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]
    if len(found) == 1 and not found[0][0]:
        return found[0][1]
    inner = ", ".join(f"{key} {text}" for key, text in found)
    return f"({inner})" if found else ""
