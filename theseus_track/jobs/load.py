"""From a text to what it names: a key, `module:Class` or `file.py:Class`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import jax

from theseus_track.analysis import lookup
from theseus_track.errors import BadInput, NotFound, TheseusError, describe_unknown
from theseus_track.jobs.job import kind_of
from theseus_track.jobs.recipe import Recipe
from theseus_track.jobs.spec import file_module

__all__ = ["load_class", "load_job", "load_recipe"]


def load_job(spec: str) -> type:
    """Return the job that a text names.

    Args:
        spec: A registered key, `module:Class` or `file.py:Class`. A file is run under
            another module name, so what is under `if __name__ == "__main__"` is not.

    Returns:
        A Trainer or an analysis; `kind_of` tells which.

    Raises:
        NotFound: When there is no such key, file, module or class; lists near matches.
        BadInput: When the class is no job, or its file raises.

    Example:
        ```python
        import theseus_track.demo
        from theseus_track.jobs import load_job

        trainer = load_job("demo/gpt/pretrain")(steps=10)
        ```
    """
    cls = load_class(spec)
    if kind_of(cls) is None:
        raise BadInput(
            f"{spec!r} is {cls!r}, which is no job: a job inherits from "
            "theseus_track.jobs.Trainer or theseus_track.analysis.AnalysisBase."
        )
    assert isinstance(cls, type)
    return cls


def load_recipe(spec: str) -> Recipe:
    """Return the recipe that a text names.

    Args:
        spec: `FILE.py` or `module`, whose `recipe` is taken, or either with
            `:OBJECT`. The object is a Recipe, or a function without arguments that
            returns one.

    Returns:
        The recipe.

    Raises:
        NotFound: When there is no such file, module or object.
        BadInput: When the object is no recipe, or its file raises.
    """
    named = ":" in spec and not spec.endswith(".py")
    found = load_class(spec if named else f"{spec}:recipe")
    made = found() if callable(found) and not isinstance(found, Recipe) else found
    if not isinstance(made, Recipe):
        raise BadInput(
            f"{spec!r} gives a {type(made).__name__}, not a Recipe. Write `recipe = "
            "theseus_track.jobs.Recipe(eval_step, variables, batch)` in it."
        )
    if not jax.tree.leaves(made.variables):
        raise BadInput(
            f"{spec!r}: Recipe.variables has no arrays. Give what `jax.eval_shape("
            "model.init, key, batch)` returns."
        )
    return made


def load_class(spec: str) -> object:
    """Return whatever a text names; see `load_job`."""
    place, colon, name = spec.rpartition(":")
    if not colon:
        return lookup(spec)
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise NotFound(f"{place}: {describe_unknown('class', name, _jobs(module))}")
        found = getattr(found, part)
    return found


def _load_module(name: str) -> ModuleType:
    if name == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        if file is None:
            raise BadInput(
                "The job is in __main__, which is no file (a notebook or a prompt). "
                "Put it into a file and give file.py:Class."
            )
        return _load_file(Path(file))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A module that is there but lacks one of its own imports is another matter.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failed(name, error) from error
        raise NotFound(
            f"There is no module {name!r} on the path of {sys.executable}. Install it, "
            "or give file.py:Class."
        ) from error
    except Exception as error:
        raise _failed(name, error) from error


def _load_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        near = [file.name for file in path.parent.glob("*.py")]
        raise NotFound(f"{path}: {describe_unknown('file', path.name, near)}")
    name = file_module(path)
    if name in sys.modules:
        return sys.modules[name]
    if str(path.parent) not in sys.path:
        # As for a script, whose neighbours can be imported; last, to hide nothing.
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses and pickle look a class' module up there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, TheseusError | KeyboardInterrupt):
            raise
        raise _failed(str(path), error) from error
    return module


def _failed(place: str, error: BaseException) -> BadInput:
    return BadInput(
        f"{place} cannot be loaded: {type(error).__name__}: {error}. If it trains when "
        'it runs, put that under `if __name__ == "__main__":`.'
    )


def _jobs(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if kind_of(value)]
