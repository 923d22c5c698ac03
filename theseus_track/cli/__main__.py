"""Lets `python -m theseus_track.cli` be the command `theseus-track`."""

from theseus_track.cli import main

main(prog_name="theseus-track")
