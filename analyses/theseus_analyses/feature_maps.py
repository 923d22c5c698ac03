"""What the channels of a convolution see in an image."""

from typing import Any

import jax
import numpy as np
from flax import linen, nnx

from theseus_track.analysis import AnalysisBase, analysis

__all__ = ["FeatureMaps"]


@analysis("theseus/feature_maps")
class FeatureMaps(AnalysisBase):
    """Ask which places of an image each channel of a convolution responds to.

    The layer's output for the first sample, one picture a channel, before what
    follows (Zeiler and Fergus, 2014, "Visualizing and Understanding Convolutional
    Networks").

    How to read it: bright is where the channel answers. Channels that are alike are
    redundant; one that is constant does nothing here.

    Cost: a crop of one output; returns 4 bytes a pixel.
    Traps: each picture is of one sample: another image may light up others.

    Attributes:
        TARGET: Convolutions over two axes, of Linen and NNX.
        CHANNELS: How many channels are kept, >= 1.
    """

    TARGET = (linen.Conv, nnx.Conv)
    UNORDERED = ("channel",)
    CHANNELS = 16

    def analyze(self, layer: Any, inputs: Any) -> jax.Array:
        """Return the first sample's channels, [channel, row, column]."""
        output: jax.Array = inputs.output
        if output.ndim != 4:
            raise ValueError(
                f"The convolution returns {output.shape}, not [batch, row, column, "
                "channel]. Select one over images."
            )
        return output[0, :, :, : self.CHANNELS].transpose(2, 0, 1)

    def plot(self, values: np.ndarray) -> object:
        """Draw the channels side by side, on one scale."""
        names = [f"Channel {channel}" for channel in range(len(values))]
        return self.image_grid(values, titles=names, xlabel="Column", ylabel="Row")
