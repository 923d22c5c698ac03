"""What a real TensorBoard shows, in both of its loaders, over HTTP."""

import json
import math
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tensorboardX import SummaryWriter

from tests.sinks.tensorboard_server import (
    LOADERS,
    SAMPLES,
    Board,
    fenced_json,
    serve,
    wait_until,
)
from tests.store.ledgers import run_info
from theseus_track.records import Item, MetricsRecord, RunInfo
from theseus_track.sinks import Delivery, TensorBoardSink, sync, viewing_command
from theseus_track.sinks.conformance import Items, tiny_png, wall_time
from theseus_track.store import LedgerWriter, NewPart, NewResult

# Every test here reads one of two servers, which take seconds to start.
pytestmark = pytest.mark.slow

# In seconds; a bound against hanging, not an expectation.
LIMIT = 60.0
STEPS = list(range(0, 300, 10))
LATE = [15, 25]
REPEATED = 30
VALUE = {
    "a_b_c": "x*y*z",
    "<0x0A>": 1,
    "t": "</pre>",
    "nan": math.nan,
    "rows": [[1, "a|b"], [2, "```"]],
}
NAMES = ["gpt acts", "gpt_acts", "gpt:acts", "gpt/acts", "gpt.acts", "é日本"]


def write(logdir: Path, name: str, items: list[Item], **settings: object) -> None:
    sink = TensorBoardSink(logdir, **settings)  # type: ignore[arg-type]
    info = RunInfo(project="tests", name=name, id=f"id-{name}", created=0.0)
    delivery = Delivery(sink, info)
    for item in items:
        delivery.offer(item)
        # One by one: what waits together would be put into step order.
        assert delivery.flush(LIMIT)
    assert delivery.close(LIMIT).complete


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One log directory with all that the tests of this file ask for."""
    logdir = tmp_path_factory.mktemp("board") / "logs"
    items = Items()
    write(
        logdir,
        "gpt",
        [
            *(items.figure(step) for step in STEPS),
            *(items.figure(step, "attn", "head 1") for step in STEPS[:3]),
            *(items.json(step, VALUE) for step in STEPS[:3]),
            *(items.metrics(step, {"loss": 1.0 / (1 + step)}) for step in STEPS),
            *(items.figure(step) for step in LATE),
            items.figure(REPEATED),
            items.figure(2**40),
            *(items.figure(1, name) for name in NAMES),
        ],
    )
    odd = {"nan": math.nan, "inf": math.inf, "a b": 1.0, "a_b": 2.0, "huge": 1e300}
    write(logdir, "other", [Items().figure(5), Items("w2").metrics(5, odd)])
    for writer, steps in (("w1", (1, 2, 3)), ("w2", (3, 4, 5))):
        more = Items(writer)
        figures = [more.figure(step) for step in steps]
        write(
            logdir,
            "resumed",
            figures + [more.metrics(s, {"loss": float(s)}) for s in steps],
        )
    theirs = SummaryWriter(str(logdir / "user"))
    mine = Items("mine")
    figures = [mine.figure(step) for step in (1, 2)]
    write(logdir / "user", "user", figures, run="", metrics=False)
    for step in range(20):
        theirs.add_scalar("loss", 0.5, step, walltime=wall_time(step))
    theirs.close()
    backfilled(logdir)
    return logdir


def backfilled(logdir: Path) -> None:
    """Deliver a training, then what a replay found at steps before and between."""
    info = run_info("filled", name="filled")
    for purpose, steps in (("live", STEPS[1:]), ("replay", [0, *LATE])):
        with LedgerWriter.create(logdir.parent, info, purpose=purpose) as ledger:
            for step in steps:
                png, when = tiny_png(step), wall_time(step)
                part = NewPart(
                    part="", kind="figure", blobs={"png": png, "pdf": b"%PDF-1.4"}
                )
                ledger.append(
                    MetricsRecord(step=step, wall_time=when, metrics={"loss": 1.0}),
                    NewResult(
                        key=None, name="a", step=step, wall_time=when, parts=(part,)
                    ),
                )
        assert sync("filled", root=logdir.parent, to=[f"tensorboard:{logdir}"]).complete


@pytest.fixture(scope="module", params=list(LOADERS))
def board(logdir: Path, request: pytest.FixtureRequest) -> Iterator[Board]:
    with serve(logdir, request.param) as board:
        wait_until(
            lambda: (
                len(board.steps("user/theseus", "activations")) == 2
                and len(board.scalars("user", "loss")) == 20
                and len(board.scalars("resumed/theseus-metrics-1", "loss")) == 1
                and len(board.steps("gpt/theseus-replay-1", "activations")) == 3
            ),
            LIMIT,
            "the log directory is not loaded",
        )
        yield board


def test_every_figure_is_shown_at_its_step_and_time_with_our_pixels(
    board: Board,
) -> None:
    expected = [(step, wall_time(step), tiny_png(step)) for step in [*STEPS, 2**40]]
    assert board.images("gpt/theseus", "activations") == expected


def test_the_loss_curve_is_in_the_runs_own_directory(board: Board) -> None:
    points = board.scalars("gpt", "loss")
    assert [(time, step) for time, step, _ in points] == [
        (wall_time(step), step) for step in STEPS
    ]
    assert [number for *_, number in points] == pytest.approx(
        [1.0 / (1 + step) for step in STEPS]
    )
    assert set(board.tags("scalars")["gpt"]) == {"loss"}


def test_late_and_repeated_steps_are_shown_beside_and_hide_nothing(
    board: Board,
) -> None:
    assert board.images("gpt/theseus-replay-1", "activations") == [
        (step, wall_time(step), tiny_png(step)) for step in [*LATE, REPEATED]
    ]


def test_a_backfill_is_in_its_place_and_hides_nothing(board: Board) -> None:
    steps = sorted([*STEPS, *LATE])
    assert board.images("filled/theseus", "a") == [
        (step, wall_time(step), tiny_png(step)) for step in steps
    ]
    points = board.scalars("filled", "loss")
    assert points == [(wall_time(step), step, 1.0) for step in steps]
    assert {run for run in board.runs() if run.startswith("filled")} == {
        "filled",
        "filled/theseus",
    }


def test_a_part_has_a_tag_of_its_own(board: Board) -> None:
    assert board.steps("gpt/theseus", "attn.head 1") == STEPS[:3]


def test_a_json_value_is_shown_verbatim_with_its_numbers(board: Board) -> None:
    texts = board.texts("gpt/theseus", "entropy/table")
    assert [step for step, _ in texts] == STEPS[:3]
    shown = json.loads(fenced_json(texts[0][1]))
    assert shown == {**VALUE, "nan": "NaN"}
    assert "<table>" in texts[0][1]
    assert "<em>" not in texts[0][1]
    numbers = board.scalars("gpt/theseus", "entropy/<0x0A>")
    assert [(step, number) for _, step, number in numbers] == [
        (step, 1.0) for step in STEPS[:3]
    ]
    assert all(math.isnan(n) for *_, n in board.scalars("gpt/theseus", "entropy/nan"))


def test_names_that_look_alike_have_tags_of_their_own(board: Board) -> None:
    tags = board.tags("images")["gpt/theseus"] - {"activations", "attn.head 1"}
    assert len(tags) == len(NAMES)
    assert all(board.steps("gpt/theseus", tag) == [1] for tag in tags)


def test_numbers_that_are_not_finite_break_no_curve(board: Board) -> None:
    shown = {
        tag: board.scalars("other", tag)[0][2] for tag in board.tags("scalars")["other"]
    }
    assert math.isnan(shown.pop("nan"))
    assert shown == {"inf": math.inf, "huge": math.inf, "a b": 1.0, "a_b": 2.0}


def test_two_sinks_in_one_log_directory_do_not_mix(board: Board) -> None:
    assert board.images("other/theseus", "activations") == [
        (5, wall_time(5), tiny_png(5))
    ]


def test_a_resumed_run_is_shown_whole_and_in_order(board: Board) -> None:
    assert board.steps("resumed/theseus", "activations") == [1, 2, 3, 4, 5]
    assert [step for _, step, _ in board.scalars("resumed", "loss")] == [1, 2, 3, 4, 5]
    assert board.steps("resumed/theseus-replay-1", "activations") == [3]


def test_the_users_own_writer_beside_ours_keeps_its_curve(board: Board) -> None:
    assert [step for _, step, _ in board.scalars("user", "loss")] == list(range(20))
    assert board.steps("user/theseus", "activations") == [1, 2]


def test_what_is_written_while_the_server_runs_appears(
    board: Board, logdir: Path
) -> None:
    name = f"live-{board.url.rsplit(':', 1)[1]}"
    theirs = SummaryWriter(str(logdir / name), flush_secs=1)
    sink = TensorBoardSink(logdir / name, run="", metrics=False)
    sink.open(RunInfo(project="tests", name=name, id=name, created=0.0))
    items, shown = Items(), f"{name}/theseus"

    def appears(steps: list[int]) -> bool:
        loss = [step for _, step, _ in board.scalars(name, "loss")]
        return board.steps(shown, "activations") == steps and loss == steps

    for steps in ([1], [1, 2], [1, 2, 3]):
        theirs.add_scalar("loss", 0.5, steps[-1])
        sink.write(items.figure(steps[-1]))
        wait_until(partial(appears, steps), LIMIT, f"{steps} not shown")
    sink.write(items.figure(2))
    wait_until(
        lambda: board.steps(f"{name}/theseus-replay-1", "activations") == [2],
        LIMIT,
        "the late step is not shown",
    )
    assert appears([1, 2, 3])
    theirs.close()
    sink.close(LIMIT)


def test_the_printed_command_asks_for_every_sample(logdir: Path) -> None:
    # The servers of this file run with the same limits as the printed command.
    words = shlex.split(viewing_command(logdir))
    assert words[words.index("--samples_per_plugin") + 1] == SAMPLES
