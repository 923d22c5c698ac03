"""From the text that names a job or a recipe to its forward pass."""

from collections.abc import Iterable

from theseus_track.errors import BadInput, TheseusError
from theseus_track.jobs.load import load_class, load_recipe
from theseus_track.jobs.recipe import Recipe, recipe_of
from theseus_track.jobs.settings import parse_settings
from theseus_track.jobs.trainer import Trainer

__all__ = ["first_line", "forward_of"]


def forward_of(spec: str, settings: Iterable[str] = ()) -> Recipe:
    """Return the forward pass of what a text names; allocates no parameter.

    Args:
        spec: A registered key, `module:Class` or `file.py:Class` of a Trainer or of an
            analysis with a Trainer among its bases; or a recipe, as for `load_recipe`.
        settings: Hyperparameters of the Trainer, as "key=value".

    Returns:
        The Recipe.

    Raises:
        NotFound: When there is no such key, file, module or object.
        BadInput: When it has no forward pass, a setting does not fit, or the user's
            code raises.

    Example:
        ```python
        import theseus_track.demo
        from theseus_track.jobs import forward_of, outline

        for module in outline(forward_of("demo/gpt/pretrain", ["layers=2"])):
            print(module.path, module.cls, module.parameters)
        ```
    """
    texts = tuple(settings)
    try:
        # A file alone, or a module, stands for the recipe in it.
        if ":" not in spec and spec.endswith(".py"):
            found: object = load_recipe(spec)
        else:
            found = load_class(spec)
        if isinstance(found, type) and issubclass(found, Trainer):
            return recipe_of(found(**parse_settings(found.config_class(), texts)))
        recipe = found if isinstance(found, Recipe | type) else load_recipe(spec)
    except TheseusError:
        raise
    except Exception as error:  # The user's own code, which may raise anything.
        raise BadInput(
            f"{spec!r} gives no forward pass: {type(error).__name__}: "
            f"{first_line(error)}"
        ) from error
    if not isinstance(recipe, Recipe):
        raise BadInput(
            f"{spec!r} is {found!r}, which has no forward pass. Give a Trainer, an "
            "analysis with a Trainer among its bases, or a Recipe."
        )
    if texts:
        raise BadInput(
            f"{spec!r} is a recipe, which takes no settings such as {texts[0]!r}."
        )
    return recipe


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message that says something."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].strip() if lines else "no message"
