import pytest

from theseus_track.sinks.retry import Breaker, RetryPolicy


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_pauses_between_tries_grow_up_to_a_limit_and_are_jittered() -> None:
    policy = RetryPolicy(first_wait=1.0, longest_wait=8.0)
    for failures, full in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (10_000, 8.0)):
        waits = [policy.wait(failures) for _ in range(50)]
        assert all(full / 2 <= wait <= full for wait in waits)
        assert len(set(waits)) > 1


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"pause_after": 0}, {"first_wait": -1.0}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be >="):
        RetryPolicy(**wrong)  # type: ignore[arg-type]


def test_items_failing_in_a_row_pause_the_sink() -> None:
    clock = Clock()
    breaker = Breaker(RetryPolicy(pause_after=2, pause=60.0), clock)
    assert not breaker.fail()
    breaker.succeed()
    assert not breaker.fail()
    assert breaker.fail()
    assert breaker.remaining() == 60.0
    clock.now += 61.0
    assert breaker.remaining() == 0.0


def test_after_a_pause_one_failure_is_enough_for_the_next() -> None:
    clock = Clock()
    breaker = Breaker(RetryPolicy(pause_after=2, pause=60.0), clock)
    breaker.trip()
    breaker.end_pause()
    assert breaker.remaining() == 0.0
    assert breaker.fail()
    breaker.end_pause()
    breaker.succeed()
    assert not breaker.fail()
