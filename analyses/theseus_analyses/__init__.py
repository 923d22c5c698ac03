"""Ready-made analyses, written with the public names of theseus-track only.

What comes in: calls of common layers. What goes out: analysis classes, registered
through the entry point `theseus_track.analyses` that third parties use too.
"""
