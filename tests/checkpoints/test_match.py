"""match: which stored leaf belongs to which, and the table of what does not fit."""

from theseus_track.checkpoints import Difference, Leaf
from theseus_track.checkpoints.leaves import Name
from theseus_track.checkpoints.match import match, table

F32 = Leaf(shape=(2,), dtype="float32")
BF16 = Leaf(shape=(2,), dtype="bfloat16")
WIDE = Leaf(shape=(3,), dtype="float32")


def _leaves(**leaves: Leaf) -> dict[Name, Leaf]:
    return {tuple(name.split("__")): leaf for name, leaf in leaves.items()}


def test_every_difference_has_its_kind() -> None:
    wanted = _leaves(params__a=F32, params__b=F32, params__c=F32, params__d=F32)
    stored = _leaves(
        params__a=F32, params__b=BF16, params__c=WIDE, params__e=F32, step=F32
    )
    found = match(wanted, stored)
    assert [(d.kind, d.name) for d in found.differences] == [
        ("dtype", "params/b"),
        ("shape", "params/c"),
        ("missing", "params/d"),
        ("extra", "params/e"),
    ]
    assert set(found.pairs) == {("params", "a"), ("params", "b")}
    assert found.ignored == ("step",)


def test_a_collection_in_another_place_is_found_alone() -> None:
    wanted = _leaves(params__a=F32, batch_stats__mean=F32)
    stored = _leaves(params__a=F32, model_state__batch_stats__mean=F32, opt__mu__a=F32)
    found = match(wanted, stored)
    assert found.differences == ()
    assert found.pairs["batch_stats", "mean"] == ("model_state", "batch_stats", "mean")
    assert found.ignored == ("opt",)


def test_a_name_of_the_same_word_with_other_leaves_is_no_place() -> None:
    wanted = _leaves(params__a=F32)
    stored = _leaves(train__params__a=F32, sampler__params__temperature=F32)
    assert match(wanted, stored).pairs == {("params", "a"): ("train", "params", "a")}


def test_variables_of_nnx_match_with_and_without_value() -> None:
    wanted = _leaves(layer__kernel=F32)
    stored = _leaves(layer__kernel__value=F32)
    assert match(wanted, stored).pairs == {("layer", "kernel"): next(iter(stored))}
    assert match(stored, wanted).pairs == {next(iter(stored)): ("layer", "kernel")}


def test_what_is_taken_from_elsewhere_is_compared_there() -> None:
    stored = _leaves(params__a=F32, ema__params__a=F32, ema__params__b=F32)
    found = match(_leaves(params__a=F32), stored, {"params": "ema/params"})
    assert [(d.kind, d.name) for d in found.differences] == [("extra", "ema/params/b")]


def test_a_long_table_is_cut_and_counted() -> None:
    rows = [
        Difference(kind="missing", name=f"w{i}", wanted="float32[2]", stored="")
        for i in range(30)
    ]
    lines = table(rows).splitlines()
    assert len(lines) == 1 + 20 + 1
    assert lines[0].split() == ["LEAF", "MODEL", "CHECKPOINT"]
    assert lines[1].split() == ["missing", "w0", "float32[2]", "-"]
    assert lines[-1] == "... 30 in all"
