"""Where a W&B run is: entity, project, id."""

import dataclasses

from theseus_track.errors import BadInput
from theseus_track.records import RunInfo

__all__ = ["Address", "known_place", "parse"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The parts of a path in W&B; "" where a part is not given.

    Attributes:
        entity: A user or a team; "" for the one that W&B takes by default.
        project: The project.
        id: The id of a run that exists; "" when none is meant.
    """

    entity: str = ""
    project: str = ""
    id: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.entity, self.project, self.id) if part)


def parse(target: str) -> Address:
    """Read what follows `wandb:`.

    Args:
        target: "", `PROJECT`, `ENTITY/PROJECT` or `ENTITY/PROJECT/ID`.

    Raises:
        BadInput: When it has another form.
    """
    parts = target.split("/") if target else []
    if len(parts) > 3 or not all(parts):
        raise BadInput(
            f"'wandb:{target}' is no place in W&B. Give wandb:PROJECT, "
            "wandb:ENTITY/PROJECT, or wandb:ENTITY/PROJECT/ID for a run that exists."
        )
    match parts:
        case [entity, project, run]:
            return Address(entity=entity, project=project, id=run)
        case [entity, project]:
            return Address(entity=entity, project=project)
        case [project]:
            return Address(project=project)
    return Address()


def known_place(info: RunInfo) -> Address | None:
    """Return where the ledger says that a run was shown; None when it never was.

    Only a run that the user gave to `open_run` has an id here. Which one was joined
    or begun at the first delivery is not in the ledger.
    """
    settings = info.sinks.get("wandb")
    if not isinstance(settings, dict):
        return None
    spec = settings.get("spec")
    if isinstance(spec, str):
        return parse(spec.partition(":")[2])
    entity, project, run = (settings.get(key) for key in ("entity", "project", "id"))
    return Address(
        entity=str(entity or ""), project=str(project or ""), id=str(run or "")
    )
