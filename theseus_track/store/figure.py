"""A figure as it was rendered: its PNG and PDF files."""

import dataclasses
from pathlib import Path

from theseus_track.records import Part
from theseus_track.store.blobs import read_blob
from theseus_track.store.layout import blob_path

__all__ = ["StoredFigure"]


@dataclasses.dataclass(frozen=True, slots=True)
class StoredFigure:
    """A figure as it was rendered; a notebook shows its pixels."""

    _run: Path
    _part: Part

    @property
    def part(self) -> str:
        """Its name within the result; "" when there is one."""
        return self._part.part

    @property
    def png_path(self) -> Path:
        """The PNG file, absolute."""
        return blob_path(self._run, self._part.blobs["png"], "png")

    @property
    def pdf_path(self) -> Path:
        """The PDF file, absolute."""
        return blob_path(self._run, self._part.blobs["pdf"], "pdf")

    @property
    def png(self) -> bytes:
        """The PNG file's content; LedgerError when missing or damaged."""
        return read_blob(self.png_path, self._part.blobs["png"])

    @property
    def pdf(self) -> bytes:
        """The PDF file's content; LedgerError when missing or damaged."""
        return read_blob(self.pdf_path, self._part.blobs["pdf"])

    def _repr_png_(self) -> bytes:
        return self.png
