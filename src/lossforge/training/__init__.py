"""One training loop: reproducible to the bit on a CPU, resumable after any epoch, distributed.

>>> import torch
>>> inputs, labels = torch.eye(4).repeat(8, 1), torch.arange(4).repeat(8)
>>> data = Samples(lambda index, generator: inputs[index], labels, labels)
>>> settings = Settings(epochs=5, batch_size=8, lr=1.0)
>>> state = train(
...     torch.nn.Linear(4, 4), torch.nn.CrossEntropyLoss(), data, {"test": data}, settings, seed=0
... )
>>> state.epoch, state.metrics[-1]["tests"]["test"]["top1"]
(5, 100.0)
"""

from .distributed import launched
from .evaluate import accuracy, features, memorisation, top_classes
from .fit import Diverged
from .loop import train
from .method import Batch, Epoch, Method, Objective, Step
from .methods import make_method, method_names
from .network import Network
from .pace import Pace
from .samples import Samples
from .seeds import generator
from .settings import Settings
from .state import State
from .track import MetricsFile, TensorBoard, Tracker

__all__ = [
    "Batch",
    "Diverged",
    "Epoch",
    "Method",
    "MetricsFile",
    "Network",
    "Objective",
    "Pace",
    "Samples",
    "Settings",
    "State",
    "Step",
    "TensorBoard",
    "Tracker",
    "accuracy",
    "features",
    "generator",
    "launched",
    "make_method",
    "memorisation",
    "method_names",
    "top_classes",
    "train",
]
