import shlex

from theseus_track.sinks import viewing_command


def test_the_command_shows_every_sample_of_a_directory_with_blanks() -> None:
    words = shlex.split(viewing_command("my logs/a"))
    assert words[:3] == ["tensorboard", "--logdir", "my logs/a"]
    assert words[3:] == [
        "--samples_per_plugin",
        "images=1000,text=1000,scalars=5000",
    ]
