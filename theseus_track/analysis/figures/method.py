"""Make a helper a method that draws in the theme of its analysis."""

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

__all__ = ["Helper"]

P = ParamSpec("P")
R = TypeVar("R")


class Helper(Generic[P, R]):
    """A helper as an attribute of a class that has a THEME."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        # A help text and a signature of its own, also on the class.
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type) -> Callable[P, R]:
        """Return the helper with THEME for `theme`, but where axes bring their own."""
        function = self._function
        holder = owner if instance is None else instance

        @functools.wraps(function)
        def method(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs.get("ax") is None and kwargs.get("theme") is None:
                kwargs["theme"] = getattr(holder, "THEME", None)
            return function(*args, **kwargs)

        return method
