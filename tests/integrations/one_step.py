"""One step of a `Trainer` on sixteen samples; as a script, that of one of several processes.

torchrun --nproc-per-node=2 one_step.py FOLDER
"""

import sys
from pathlib import Path

import torch

import lossforge
from lossforge import Loss
from lossforge.integrations.huggingface import loss_func, use_linear_loss

CASES = ["sequence", "soft", "tokens", "causal"]
CLASSES, LENGTH, VOCABULARY = 5, 6, 11


def dataset(case):
    """Sixteen samples, with labels to ignore that are not spread evenly."""
    generator = torch.Generator().manual_seed(1)
    rows = []
    for i in range(16):
        words = torch.randint(VOCABULARY, (LENGTH,), generator=generator)
        if case == "sequence":
            labels = torch.randint(CLASSES, (), generator=generator)
        elif case == "soft":
            labels = torch.rand(CLASSES, generator=generator, dtype=torch.float64).softmax(0)
        else:
            labels = words.clone() if case == "causal" else words % CLASSES
            labels[: 1 + i // 3] = -100
        rows.append({"input_ids": words, "labels": labels})
    return rows


def make_model(case):
    """A tiny network with the same random weights every time."""
    import transformers

    torch.manual_seed(0)
    size = {"vocab_size": VOCABULARY, "num_labels": CLASSES, "use_cache": False}
    if case == "causal":
        config = transformers.GPT2Config(
            n_embd=8, n_layer=1, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **size
        )
        return transformers.GPT2LMHeadModel(config).double()
    config = transformers.BertConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
        **size,
    )
    if case == "tokens":
        return transformers.BertForTokenClassification(config).double()
    config.problem_type = "single_label_classification"
    return transformers.BertForSequenceClassification(config).double()


def make_trainer(
    case, loss, folder, *, batch, accumulate, devices=1, across=True, linear=False, **more
):
    """A trainer of one step over the whole data set."""
    import transformers

    args = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=batch,
        per_device_eval_batch_size=16,
        gradient_accumulation_steps=accumulate,
        average_tokens_across_devices=across,
        max_steps=1,
        optim="sgd",
        max_grad_norm=0.0,
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        dataloader_pin_memory=False,
        **more,
    )
    if devices > 1:
        args._n_gpu = devices
    model, compute = make_model(case), loss
    if linear:
        compute = use_linear_loss(model, loss, chunk=5)
    elif isinstance(loss, Loss):
        compute = loss_func(loss, shift=case == "causal")
    return transformers.Trainer(model, args, train_dataset=dataset(case), compute_loss_func=compute)


def gradients(case, loss, folder, **settings):
    """What the optimizer sees.

    Args:
        case: One of `CASES`.
        loss: A loss, a function for `compute_loss_func`, or None for the model's own.
        folder: Where the trainer may write.
        **settings: Those of `make_trainer`.
    """
    import transformers

    found = {}

    class Recorder(transformers.TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, model=None, **others):
            for name, parameter in model.named_parameters():
                if parameter.grad is not None:
                    found[name.removeprefix("module.")] = parameter.grad.clone()

    trainer = make_trainer(case, loss, folder, **settings)
    trainer.add_callback(Recorder())
    trainer.train()
    return found


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    output = Path(sys.argv[1])
    step = gradients("tokens", lossforge.CE(), output, batch=4, accumulate=2)
    torch.save(step, output / f"{torch.distributed.get_rank()}.pt")
