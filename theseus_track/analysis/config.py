"""How the CONFIG dataclasses of a job and its analyses become one `self.args`."""

import dataclasses
from collections.abc import Collection, Iterable
from typing import Any, ClassVar

from theseus_track.errors import BadInput

__all__ = ["Configured", "compose_config"]

# What the caller of a config gets: a dataclass made at run time, of any fields.
Config = Any


class Configured:
    """A class whose `CONFIG` dataclasses appear as `self.args`.

    Attributes:
        CONFIG: A dataclass of hyperparameters, or None. The CONFIGs of all base
            classes compose; a subclass overrides a default by naming the field
            again.
    """

    CONFIG: ClassVar[type[Any] | None] = None

    @property
    def args(self) -> Config:
        """The hyperparameters: the composed CONFIG, with defaults until set."""
        stored = self.__dict__.get("_args")
        if stored is None:
            stored = self.__dict__["_args"] = compose_config(type(self))()
        return stored


def compose_config(cls: type, extra: Iterable[type] = ()) -> type:
    """Compose the CONFIGs of a class and of its analyses into one dataclass.

    Args:
        cls: The class whose bases are read, the most basic first, so that a
            subclass overrides its bases' defaults.
        extra: Classes whose CONFIGs are merged in beside it (the analyses of a
            Trainer). These may not disagree, except about a field that the CONFIG of
            `cls` itself names, which decides. What they inherit from a base of
            `cls` does not count.

    Returns:
        A keyword-only dataclass with every field.

    Raises:
        BadInput: When CONFIG is no dataclass, or two classes that do not inherit
            from one another give one field different defaults.
    """
    fields = _own_fields(cls)
    owners = dict.fromkeys(fields, cls.__name__)
    decided = _own_fields(cls, without=cls.__mro__[1:])
    for other in extra:
        for name, field in _own_fields(other, without=cls.__mro__).items():
            known = fields.setdefault(name, field)
            owners.setdefault(name, other.__name__)
            if name not in decided and not _same_default(known, field):
                raise BadInput(
                    f"The config field {name!r} has the default {_shown(known)} in "
                    f"{owners[name]} and {_shown(field)} in {other.__name__}. Set it "
                    f"explicitly to one default, in a CONFIG of {cls.__name__}."
                )
    spec = [(f.name, f.type, _copy(f)) for f in fields.values()]
    return dataclasses.make_dataclass(f"{cls.__name__}Config", spec, kw_only=True)


def _own_fields(
    cls: type, *, without: Collection[type] = ()
) -> dict[str, "dataclasses.Field[Any]"]:
    fields: dict[str, dataclasses.Field[Any]] = {}
    for base in reversed(cls.__mro__):
        config = vars(base).get("CONFIG")
        if config is None or base in without:
            continue
        if not dataclasses.is_dataclass(config) or not isinstance(config, type):
            raise BadInput(
                f"{base.__qualname__}.CONFIG is {config!r}, not a dataclass. "
                "Write `@dataclass class Config: ...` and `CONFIG = Config`."
            )
        fields.update({field.name: field for field in dataclasses.fields(config)})
    return fields


def _same_default(one: "dataclasses.Field[Any]", two: "dataclasses.Field[Any]") -> bool:
    if one.default_factory is not two.default_factory:
        return False
    return bool(one.default is two.default or one.default == two.default)


def _shown(field: "dataclasses.Field[Any]") -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    has_factory = field.default_factory is not dataclasses.MISSING
    return "a default factory" if has_factory else "no default"


def _copy(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return dataclasses.field(default=field.default, metadata=field.metadata)
    if field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(
            default_factory=field.default_factory, metadata=field.metadata
        )
    return dataclasses.field(metadata=field.metadata)
