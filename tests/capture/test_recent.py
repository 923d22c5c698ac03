"""The table keeps what was used last."""

from theseus_track.capture.recent import Recent


def test_a_value_is_made_once_and_forgotten_when_not_used_for_longest():
    made = []
    table = Recent[str](2)

    def get(key):
        def make():
            made.append(key)
            return key.upper()

        return table.get(key, make)

    assert [get(key) for key in "abacab"] == list("ABACAB")
    assert made == ["a", "b", "c", "b"]
