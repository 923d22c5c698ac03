"""Real English that every Python ships, as characters: Python's own help topics."""

import dataclasses
import functools
from pydoc_data.topics import topics

import numpy as np

from theseus_track.errors import BadInput, describe_unknown

__all__ = ["Text", "load_text"]

TRAIN_SHARE = 0.9


@dataclasses.dataclass(frozen=True, kw_only=True)
class Text:
    """A text as character codes, split into a head to train on and a tail to test.

    Attributes:
        alphabet: Every character that occurs, sorted; its index is its code.
        train: Codes of the first 90 %: [character], int32, host.
        val: Codes of the rest: [character], int32, host.
    """

    alphabet: str
    train: np.ndarray
    val: np.ndarray

    @classmethod
    def of(cls, text: str) -> "Text":
        """Encode and split a text; every character becomes part of the alphabet."""
        alphabet = "".join(sorted(set(text)))
        codes = _encode(text, alphabet)
        cut = int(len(codes) * TRAIN_SHARE)
        return cls(alphabet=alphabet, train=codes[:cut], val=codes[cut:])

    def encode(self, text: str) -> np.ndarray:
        """Return the codes of a text: [character], int32.

        Raises:
            BadInput: When a character is not in the alphabet.
        """
        return _encode(text, self.alphabet)

    def decode(self, codes: np.ndarray) -> str:
        """Return the text of codes: [character], integers."""
        return "".join(self.alphabet[int(code)] for code in codes)

    def split(self, name: str) -> np.ndarray:
        """Return the codes of "train" or "val".

        Raises:
            BadInput: When there is no such split.
        """
        splits = {"train": self.train, "val": self.val}
        if name not in splits:
            raise BadInput(describe_unknown("split", name, splits))
        return splits[name]

    @property
    def unigram_entropy(self) -> float:
        """The loss, in nats, of guessing by the frequency of characters alone."""
        counts = np.bincount(np.concatenate([self.train, self.val]))
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())


@functools.cache
def load_text() -> Text:
    """Return the help topics of this Python, in alphabetical order, as one Text."""
    return Text.of("\n\n".join(topics[name] for name in sorted(topics)))


def _encode(text: str, alphabet: str) -> np.ndarray:
    codes = {character: code for code, character in enumerate(alphabet)}
    unknown = sorted(set(text) - codes.keys())
    if unknown:
        raise BadInput(
            f"The characters {''.join(unknown)!r} are not in the alphabet of "
            f"{len(alphabet)} characters. Encode text of that alphabet."
        )
    return np.array([codes[character] for character in text], dtype=np.int32)
