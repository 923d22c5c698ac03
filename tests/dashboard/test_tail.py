"""The stream of changes names what appeared, grew and went."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.store.ledgers import evaluate, metrics, writer
from theseus_track.dashboard import Library
from theseus_track.dashboard.tail import changes


def _told(text: str) -> Any:
    event = json.loads(text.removeprefix("data: "))
    indexing = event.pop("indexing")
    assert indexing["done"] == indexing["total"]
    return event


def test_a_run_that_appears_grows_and_goes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A new run is read by the look that finds it, however busy the machine is.
    monkeypatch.setattr("theseus_track.dashboard.library._AT_ONCE", 60)
    library = Library([tmp_path])

    async def follow() -> list[Any]:
        stream = changes(library, pause=0.01)
        told = [await anext(stream)]
        with writer(tmp_path) as ledger:
            evaluate(ledger, 1)
            told.append(await anext(stream))
            ledger.append(metrics(2, loss=1.0))
            told.append(await anext(stream))
        told.append(await anext(stream))
        keys = list(library.runs())
        shutil.rmtree(tmp_path / "runs")
        told.append(await anext(stream))
        return [keys, *(_told(text) for text in told)]

    keys, first, appeared, grew, ended, went = asyncio.run(follow())
    assert len(keys) == 1
    assert first == {"runs": [], "gone": []}
    assert appeared == grew == ended == {"runs": keys, "gone": []}
    assert went == {"runs": [], "gone": keys}
