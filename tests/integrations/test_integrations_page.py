"""The code of docs/integrations.md runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from frameworks import FRAMEWORKS, need, torchvision_without_operators

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
TITLES = {
    "huggingface": "Hugging Face Trainer",
    "huggingface-causal": "Hugging Face causal models",
    "lightning": "Lightning",
    "timm": "timm",
    "fastai": "fastai",
    "skorch": "scikit-learn, through skorch",
    "skorch-text": "scikit-learn, from raw text",
    "boosting": "XGBoost and LightGBM",
    "segmentation": "Segmentation",
}
SHARED = """
import torch
from frameworks import torchvision_without_operators
torchvision_without_operators()
torch.manual_seed(0)
images, labels = torch.randn(100, 3, 32, 32), torch.arange(100) % 10
"""
# what the reader has
BEFORE = {
    "huggingface": """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
model = BertForSequenceClassification(BertConfig(vocab_size=20, num_labels=10, **sizes))
args = TrainingArguments("out", max_steps=2, use_cpu=True, report_to=[], save_strategy="no")
train_set = [{"input_ids": torch.arange(i % 5, i % 5 + 6), "labels": i % 10} for i in range(16)]
""",
    "huggingface-causal": """
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
model = LlamaForCausalLM(LlamaConfig(vocab_size=20, **sizes))
args = TrainingArguments("out", max_steps=2, use_cpu=True, report_to=[], save_strategy="no")
words = torch.randint(20, (16, 6))
train_set = [{"input_ids": row, "labels": row} for row in words]
""",
    "lightning": """
import lightning
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(10))
model(images)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), 8)
trainer = lightning.Trainer(max_steps=2, logger=False, accelerator="cpu",
                            enable_checkpointing=False)
""",
    "timm": """
import timm
model = timm.create_model("test_resnet.r160_in1k", num_classes=10)
""",
    "fastai": """
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.metrics import accuracy
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10))
part = DataLoader(torch.utils.data.TensorDataset(images, labels), bs=8)
loaders = DataLoaders(part, part, device="cpu")
""",
    "skorch": """
import numpy
class Network(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(64, 10))
X, y = images[:, 0].flatten(1)[:, :64].numpy(), labels.numpy()
""",
    "skorch-text": """
texts = ["apple and banana", "iron or zinc", "moon of the sky"] * 10
names, weights = ["fruit", "metal", "sky"] * 10, torch.ones(30).numpy()
""",
    "boosting": """
X, y = images[:, 0].flatten(1)[:, :8].numpy(), labels.numpy()
""",
    "segmentation": """
model, masks = torch.nn.Conv2d(3, 10, 3, padding=1), torch.randint(10, (100, 32, 32))
masks[:, :4] = 255
""",
}
AFTER = {
    "huggingface": "assert trainer.state.global_step == 2",
    "huggingface-causal": "assert trainer.state.global_step == 2 and loss > 0",
    "lightning": "assert trainer.global_step == 2",
    "timm": "assert all(parameter.grad is not None for parameter in model.parameters())",
    "fastai": "assert torch.allclose(probs.sum(1), torch.ones(100), atol=1e-5)",
    "skorch": "assert abs(probs.sum(1) - 1).max() < 1e-5 and probs.shape == (100, 10)",
    "skorch-text": "assert set(search.classes_) == {'fruit', 'metal', 'sky'}",
    "boosting": "assert abs(probs.sum(1) - 1).max() < 1e-5 and probs.shape == (100, 10)",
    "segmentation": "assert loss > 0 and model.weight.grad.abs().sum() > 0",
}


def code(title: str) -> str:
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    (found,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", TITLES)
def test_the_code_runs(name, tmp_path):
    torchvision_without_operators()
    need(*FRAMEWORKS[name.partition("-")[0]])
    script = tmp_path / "script.py"
    script.write_text("\n".join([SHARED, BEFORE[name], code(TITLES[name]), AFTER[name]]))
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr


def test_every_section_with_code_is_run():
    sections = re.split(r"\n## ", PAGE.read_text())[1:]
    assert {part.split("\n")[0] for part in sections if "```python" in part} == set(TITLES.values())
