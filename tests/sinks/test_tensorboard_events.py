import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboardX import SummaryWriter

from theseus_track.errors import BadInput
from theseus_track.sinks.conformance import tiny_png
from theseus_track.sinks.tensorboard.events import (
    EventFile,
    event_files,
    image_value,
    last_steps,
    read_events,
    scalar_value,
    text_value,
)


def write(file: EventFile, step: int, tag: str = "loss") -> None:
    file.write(step=step, wall_time=1.0 + step, values=[scalar_value(tag, 0.5)])


def steps(path: Path) -> list[int]:
    """Steps of a file by TensorBoard's own reader."""
    events = EventFileLoader(str(path)).Load()
    return [event.step for event in events if event.summary.value]


def test_an_event_can_be_read_as_soon_as_it_is_written(tmp_path: Path) -> None:
    file = EventFile(tmp_path)
    for step in range(3):
        write(file, step)
        assert steps(file.path) == list(range(step + 1))
    file.close()


def test_files_made_at_once_differ_and_sort_in_the_order_of_making(
    tmp_path: Path,
) -> None:
    files = [EventFile(tmp_path) for _ in range(20)]
    for file in files:
        file.close()
    assert event_files(tmp_path) == [file.path for file in files]


def test_a_file_sorts_after_one_from_a_host_whose_clock_is_ahead(
    tmp_path: Path,
) -> None:
    ahead = tmp_path / "events.out.tfevents.4000000000.other"
    ahead.write_bytes(b"")
    file = EventFile(tmp_path)
    file.close()
    assert event_files(tmp_path) == [ahead, file.path]


def test_a_users_writer_in_the_same_second_loses_nothing(tmp_path: Path) -> None:
    theirs = SummaryWriter(str(tmp_path))
    ours = EventFile(tmp_path)
    theirs.add_scalar("theirs", 1.0, 1)
    write(ours, 1, "ours")
    ours.close()
    theirs.close()
    assert set(last_steps(tmp_path)) == {"theirs", "ours"}


def test_the_highest_step_of_each_tag_is_found_in_all_files(tmp_path: Path) -> None:
    for tag, step in (("a", 5), ("b", 1), ("a", 3)):
        file = EventFile(tmp_path)
        write(file, step, tag)
        file.close()
    assert last_steps(tmp_path) == {"a": 5, "b": 1}
    assert last_steps(tmp_path / "absent") == {}


@pytest.mark.parametrize("keep", [0, 5, 60, -3])
def test_a_torn_file_is_read_up_to_its_last_whole_record(
    tmp_path: Path, keep: int
) -> None:
    file = EventFile(tmp_path)
    for step in range(3):
        write(file, step)
    file.close()
    file.path.write_bytes(file.path.read_bytes()[:keep])
    found = [event.step for event in read_events(file.path) if event.summary.value]
    assert found == list(range(len(found)))
    assert len(found) < 3


def test_a_flipped_bit_ends_the_reading_without_an_error(tmp_path: Path) -> None:
    file = EventFile(tmp_path)
    for step in range(3):
        write(file, step)
    file.close()
    whole = file.path.read_bytes()
    for place in range(len(whole)):
        flipped = bytes([*whole[:place], whole[place] ^ 0x80, *whole[place + 1 :]])
        file.path.write_bytes(flipped)
        assert len(list(read_events(file.path))) <= 4


@pytest.fixture
def _small_files() -> Iterator[None]:
    """Let files grow to 1000 bytes only, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.usefixtures("_small_files")
def test_a_full_disk_leaves_whole_records_only(tmp_path: Path) -> None:
    file = EventFile(tmp_path)
    write(file, 1)
    with pytest.raises(OSError, match="too large"):
        file.write(step=2, wall_time=0.0, values=[text_value("t", "x" * 2000)])
    assert not file.usable
    assert steps(file.path) == [1]
    with pytest.raises(ValueError, match="closed"):
        write(file, 3)


def test_an_image_is_stored_as_it_came() -> None:
    value = image_value("a", tiny_png(3))
    assert value.image.encoded_image_string == tiny_png(3)
    assert (value.image.width, value.image.height) == (4, 3)


@pytest.mark.parametrize("data", [b"", b"GIF89a", tiny_png(1)[:20]])
def test_what_is_no_png_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput, match="PNG"):
        image_value("a", data)
