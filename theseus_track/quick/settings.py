"""The hyperparameters of a session's job, edited as attributes, checked at once."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from theseus_track.errors import describe_unknown
from theseus_track.jobs import check_settings

__all__ = ["Settings"]


class Settings:
    """Hyperparameters by name: `q.config.learning_rate = 1e-4`.

    Reading one that was not set gives its default, None where it has none. Setting
    an unknown name or a value that does not fit is a BadInput.
    """

    def __init__(self, config: type, given: Mapping[str, object]) -> None:
        """Take a dataclass and the values that differ from its defaults."""
        vars(self)["_config"] = config
        vars(self)["_given"] = check_settings(config, given)

    def given(self) -> dict[str, Any]:
        """Return what was set."""
        return dict(vars(self)["_given"])

    def __dir__(self) -> list[str]:
        return sorted(self._fields())

    def __getattr__(self, name: str) -> Any:
        given, fields = vars(self)["_given"], self._fields()
        if name in given:
            return given[name]
        if name not in fields:
            raise AttributeError(describe_unknown("setting", name, fields))
        field = fields[name]
        if field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
        return None if field.default is dataclasses.MISSING else field.default

    def __setattr__(self, name: str, value: object) -> None:
        self._given.update(check_settings(self._config, {name: value}))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._given.items())
        return f"Settings({shown})"

    def _fields(self) -> Mapping[str, Any]:
        return {field.name: field for field in dataclasses.fields(self._config)}
