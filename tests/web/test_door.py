"""A token works once; the session that it opens stays."""

from theseus_track.web import Door


def test_a_token_works_once_and_the_next_one_is_told() -> None:
    told: list[str] = []
    door = Door(told.append)
    token = door.token
    assert door.redeem(token)
    assert not door.redeem(token)
    assert told == [door.token]
    assert door.redeem(told[0])


def test_anything_else_is_refused_whatever_its_characters() -> None:
    door = Door()
    for wrong in ("", "x", "é\ud800", door.session, door.token + " "):
        assert not door.redeem(wrong)
    assert door.knows(door.session)
    assert not door.knows(door.token)
