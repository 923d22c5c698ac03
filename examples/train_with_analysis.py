"""The Trainer way: an analysis that runs during validation, as the tutorial has it."""

from theseus_track.analysis import AnalysisBase, analysis
from theseus_track.demo import PretrainGPT, SelfAttention
from theseus_track.jobs import job


@analysis("my/gpt/activations")
class Activations(AnalysisBase, PretrainGPT):
    TARGET = SelfAttention
    NAME = "activations"

    def select(self, paths):
        return paths[0]  # First discovered attention module.

    def analyze(self, layer, inputs):
        return inputs.x[0, :64, :128]  # First sample; crop tokens/features.

    def plot(self, values):
        return self.heatmap(values, xlabel="Feature", ylabel="Token")


@job("my/gpt/train-with-analysis")
class GPTWithAnalysis(PretrainGPT):
    ANALYSIS = [Activations]


if __name__ == "__main__":
    train = GPTWithAnalysis(steps=60, eval_every=20)
    print(train(name="train-gpt", sinks=["tensorboard"]))
