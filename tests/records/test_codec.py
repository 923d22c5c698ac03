"""Records to JSON and back: older and newer forms are read, wrong ones refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theseus_track.errors import BadInput
from theseus_track.records import (
    Beat,
    Delivered,
    End,
    Leaf,
    MetricsRecord,
    Part,
    ProbeRecord,
    Record,
    RecordRef,
    ResultRecord,
    RunInfo,
    Source,
    StoredView,
    ValuesRecord,
    WriterRecord,
    dumps,
    loads,
    record_from_json,
    record_to_json,
)
from theseus_track.records.codec import decode, encode

texts = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**63)
json_objects = st.dictionaries(texts, st.none() | counts | texts | st.lists(texts))
leaves = st.lists(
    st.builds(
        Leaf,
        leaf=texts,
        dtype=texts,
        shape=st.lists(counts, max_size=3).map(tuple),
        offset=counts,
        bytes=counts,
        crc=counts,
        origin=st.none() | texts,
    ),
    max_size=2,
).map(tuple)
refs = st.builds(RecordRef, writer=texts, seq=counts)
sources = st.builds(
    Source,
    kind=texts,
    checkpoint=st.none() | texts,
    checkpoint_time=st.none() | numbers,
)
views = st.builds(
    StoredView, kind=texts, arrays=leaves, labels=json_objects, ticks=json_objects
)
parts = st.builds(
    Part,
    part=texts,
    kind=texts,
    blobs=st.dictionaries(texts, texts, max_size=2),
    view=st.none() | views,
)
tuples_of_text = st.lists(texts, max_size=3).map(tuple)
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(
        WriterRecord,
        run=texts,
        writer=texts,
        host=texts,
        pid=counts,
        started=numbers,
        resumed_at=st.none() | counts,
    ),
    st.builds(
        ValuesRecord,
        key=texts,
        name=texts,
        paths=tuples_of_text,
        step=counts,
        wall_time=numbers,
        computed=numbers,
        tree=json_objects,
        leaves=leaves,
        axes=json_objects,
        tokens=st.none() | counts,
        source=sources,
        probe=st.none() | texts,
    ),
    st.builds(
        ResultRecord,
        key=st.none() | texts,
        name=texts,
        step=counts,
        wall_time=numbers,
        parts=st.lists(parts, max_size=2).map(tuple),
        paths=tuples_of_text,
        values=st.none() | refs,
        source=sources,
        error=st.none() | texts,
    ),
    st.builds(MetricsRecord, step=counts, wall_time=numbers, metrics=json_objects),
    st.builds(ProbeRecord, name=texts, hash=texts, tree=json_objects, leaves=leaves),
    st.builds(Delivered, sink=texts, record=refs, status=texts, reason=texts),
    st.builds(Beat, time=numbers),
    st.builds(End, time=numbers),
)


def _line(record: Record) -> dict[str, Any]:
    value = loads(dumps(record_to_json(record)))
    assert isinstance(value, dict)
    return value


@given(records)
def test_a_record_comes_back_as_it_went(record: Record) -> None:
    assert record_from_json(_line(record)) == record


@given(records)
def test_fields_of_a_newer_version_are_passed_over(record: Record) -> None:
    line = _line(record)
    line.update(v=99, invented={"later": [1]}, seq=3)
    assert record_from_json(line) == record


def test_a_type_of_a_newer_version_is_passed_over() -> None:
    assert record_from_json({"v": 9, "type": "invented", "x": 1}) is None
    assert record_from_json({}) is None


def test_a_field_that_an_older_version_lacked_has_its_default() -> None:
    line: dict[str, Any] = {"type": "metrics", "step": 1, "wall_time": 2}
    line["metrics"] = {"loss": 1.5}
    assert record_from_json(line) == MetricsRecord(
        step=1, wall_time=2.0, metrics={"loss": 1.5}
    )


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"step": "1"}, r"MetricsRecord\.step.*int.*'1'"),
        ({"step": True}, r"MetricsRecord\.step.*True"),
        ({"step": 1.5}, r"MetricsRecord\.step.*1\.5"),
        ({"step": None}, r"MetricsRecord\.step.*None"),
        ({"wall_time": "NaN"}, r"MetricsRecord\.wall_time.*number.*'NaN'"),
        ({"wall_time": True}, r"MetricsRecord\.wall_time.*True"),
        ({"metrics": [1]}, r"MetricsRecord\.metrics.*object"),
        ({"tokens": "x"}, r"MetricsRecord\.tokens.*'x'"),
    ],
)
def test_a_wrong_type_is_named_with_its_field(
    change: dict[str, Any], names: str
) -> None:
    line = _line(MetricsRecord(step=1, wall_time=1.0, metrics={})) | change
    with pytest.raises(BadInput, match=names):
        record_from_json(line)


def test_a_wrong_type_deep_inside_is_named() -> None:
    record = ResultRecord(
        key=None,
        name="a",
        step=1,
        wall_time=1.0,
        parts=(Part(part="", kind="json", blobs={"json": "00"}),),
    )
    line = _line(record)
    line["parts"][0]["blobs"]["json"] = 7
    with pytest.raises(BadInput, match=r"Part\.blobs.*7"):
        record_from_json(line)
    line["parts"] = "none"
    with pytest.raises(BadInput, match=r"ResultRecord\.parts.*list"):
        record_from_json(line)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(BadInput, match=r"MetricsRecord.*wall_time"):
        record_from_json({"type": "metrics", "step": 1, "metrics": {}})


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(BadInput, match="JSON object"):
        decode(RunInfo, [])
    with pytest.raises(BadInput, match="not a record"):
        encode([1])


def test_run_info_comes_back_as_it_went() -> None:
    info = RunInfo(
        project="p",
        name="n\ud800",
        id="i",
        created=1.0,
        tags=("a",),
        config={"lr": 1e-3, "layers": [1, None]},
        versions={"jax": "1"},
    )
    assert decode(RunInfo, loads(dumps(encode(info)))) == info


@pytest.mark.parametrize("field", ["project", "name", "id"])
def test_a_run_without_identity_is_refused(field: str) -> None:
    good = RunInfo(project="p", name="n", id="i", created=1.0)
    with pytest.raises(BadInput, match=field):
        decode(RunInfo, encode(good) | {field: " "})


def test_the_bytes_of_values_are_those_of_their_leaves() -> None:
    leaf = Leaf(leaf="", dtype="int8", shape=(3,), offset=0, bytes=3, crc=0)
    record = ValuesRecord(
        key="k",
        name="n",
        paths=("p",),
        step=0,
        wall_time=0.0,
        computed=0.0,
        tree=0,
        leaves=(leaf, leaf),
    )
    assert record.bytes == 6
