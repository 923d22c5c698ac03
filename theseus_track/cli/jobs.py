"""`theseus-track jobs`: which keys there are for `run`, and what they stand for."""

import click

from theseus_track.cli.options import json_option

__all__ = ["command"]


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List the registered jobs and analyses: key, class, kind and file.

    Yours are listed when an installed package registers them; a class in a file
    needs no key: `theseus-track run file.py:Class`.
    """
    import theseus_track.demo  # noqa: F401 (registers its jobs)
    from theseus_track.analysis import registered_keys
    from theseus_track.cli.output import print_json, print_table

    rows = [_row(key) for key in registered_keys()]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("KEY", "CLASS", "KIND", "WHERE"),
        [(row["key"], row["class"], row["kind"], row["where"]) for row in rows],
    )


def _row(key: str) -> dict[str, str]:
    from theseus_track.analysis import lookup, place_of
    from theseus_track.errors import RegistryError
    from theseus_track.jobs import kind_of, spec_of

    try:
        cls = lookup(key)
    except RegistryError as error:
        # One broken plugin must not hide the other keys.
        return {"key": key, "class": "", "kind": "broken", "where": str(error)}
    where = place_of(cls).partition(" (")[2].removesuffix(")")
    return {
        "key": key,
        "class": spec_of(cls),
        "kind": kind_of(cls) or "unknown",
        "where": where,
    }
