"""Train the success predictor on pools drawn anew: p(this worker serves this need), by log loss.

    python -m trainer.choice.train --texts build/choice-texts.json.gz --minilm FOLDER --out FOLDER [--device cuda]
        [--minutes 3.5] [--pools 96] [--rank 64] [--learning-rate 5e-4] [--seed 0] [--start FOLDER]
        [--texts-per-topic N] [--tool-pools N]

Needs torch, transformers, safetensors and the weights of all-MiniLM-L6-v2 alone; no network. Texts are tokenized and
embedded once, then every batch is drawn on the training device. The target of a row is the true chance that its
outcome is drawn with: the same gradient as from outcomes, with less noise. Writes the adapter and the head every
half minute and at the end, and figures.json with what held-out topics and held-out tools show.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from orchestrator.choice.network import SuccessPredictor
from trainer.choice.adapter import adapt, load_adapter, load_encoder, merge_adapter, save_predictor
from trainer.choice.corpus import WORKERS, Corpus, build_corpus, read_document
from trainer.choice.draw_pools import draw_agents, draw_tools
from trainer.choice.measure import measure_all
from trainer.choice.score_batch import score_batch

log = logging.getLogger(__name__)

TOOL_SHARE = 0.3  # of a batch
WARM_UP = 100  # steps
HEAD_RATE = 2.0  # times the rate of the adapter: the head starts from nothing
KERNEL_RATE = 0.2  # of the learnt turns of vectors, which start from none: a fast rate would drown that
SAVED_EVERY = 30.0  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--need-encoder", type=Path, default=Path("assets/need-encoder"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="weights to go on from")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=3.5, help="of training, besides reading and measuring")
    parser.add_argument("--pools", type=int, default=96, help="needs a step, each with four workers")
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts-per-topic", type=int, help="for a short trial")
    parser.add_argument("--tool-pools", type=int, help="for a short trial")
    parser.add_argument("--measured", type=int, default=512, help="pools that each figure is measured on")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    train(parser.parse_args())


def train(options: argparse.Namespace) -> None:
    started = time.perf_counter()
    device = torch.device(options.device)
    torch.manual_seed(options.seed)
    tokenizer, plain = load_encoder(options.minilm)
    binder = merge_adapter(load_encoder(options.minilm)[1], options.need_encoder).to(device)
    document = read_document(options.texts, options.texts_per_topic, options.tool_pools)
    corpus = build_corpus(document, tokenizer, plain.to(device), binder, device)
    sizes = len(corpus.vectors), len(corpus.topics["train"].names), len(corpus.tools["train"].needs)
    log.info("%d texts, %d topics, %d needs of tools, %.0f s", *sizes, time.perf_counter() - started)
    predictor = SuccessPredictor(adapt(plain, options.rank)).to(device)
    if options.start:
        load_adapter(predictor.encoder, options.start)
        load_head(predictor, options.start)
    steps = fit(predictor, corpus, options)
    save_predictor(options.out, predictor, options.rank)
    rows = steps * options.pools * WORKERS
    figures = {"steps": steps, "rows": rows, "minutes": options.minutes, "seed": options.seed}
    figures |= measure_all(predictor, corpus, options.measured)
    (options.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    log.info("%s\n%.0f s in all", json.dumps(figures, indent=1), time.perf_counter() - started)


def load_head(predictor: SuccessPredictor, folder: Path) -> None:
    """Put the saved weights beside the encoder's into a predictor."""
    from safetensors.torch import load_file

    weights = {name: value.float() for name, value in load_file(folder / "head.safetensors").items()}
    missing, unexpected = predictor.load_state_dict(weights, strict=False)
    assert not unexpected and all(name.startswith("encoder.") for name in missing), (missing, unexpected)


def fit(predictor: SuccessPredictor, corpus: Corpus, options: argparse.Namespace) -> int:
    """Train for `options.minutes`. Returns the number of steps."""
    device, seconds = corpus.device, 60 * options.minutes
    generator = torch.Generator(device).manual_seed(options.seed)
    adapter = [weight for weight in predictor.encoder.parameters() if weight.requires_grad]
    turns = [predictor.figures.directions]
    head = [weight for name, weight in predictor.named_parameters() if not name.startswith(("encoder.", "figures.dir"))]
    rate = options.learning_rate
    optimizer = torch.optim.AdamW(
        [
            {"params": adapter, "lr": rate},
            {"params": head, "lr": rate * HEAD_RATE},
            {"params": turns, "lr": rate * KERNEL_RATE, "weight_decay": 0.0},
        ],
        weight_decay=0.01,
    )
    peaks = [group["lr"] for group in optimizer.param_groups]
    started = saved = time.perf_counter()
    losses: list[Tensor] = []
    step = 0
    while (passed := time.perf_counter() - started) < seconds:
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * min(1.0, (step + 1) / WARM_UP) * max(0.02, 1 - passed / seconds)
        loss = compute_loss(predictor, corpus, options.pools, generator)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_([*adapter, *head, *turns], 1.0)
        optimizer.step()
        losses.append(loss.detach())
        step += 1
        if step % (100 if device.type == "cuda" else 5) == 0:
            mean = torch.stack(losses).mean().item()
            log.info("step %d, excess loss %.4f, %.0f s", step, mean, time.perf_counter() - started)
            losses.clear()
            if time.perf_counter() - saved > SAVED_EVERY:
                save_predictor(options.out, predictor, options.rank)
                saved = time.perf_counter()
    return step


def compute_loss(predictor: SuccessPredictor, corpus: Corpus, pools: int, generator: torch.Generator) -> Tensor:
    """The log loss of a batch of agents and tools, above that of who knows the true chances."""
    of_tools = max(1, round(pools * TOOL_SHARE))
    batches = [
        draw_agents(corpus, corpus.topics["train"], pools - of_tools, WORKERS, generator),
        draw_tools(corpus, "train", of_tools, WORKERS, generator),
    ]
    parts = [excess_loss(score_batch(predictor, corpus, batch), batch.chances) for batch in batches]
    return torch.cat(parts).mean()


def excess_loss(logits: Tensor, chances: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of each row."""
    least = nn.functional.binary_cross_entropy(chances, chances, reduction="none")
    return nn.functional.binary_cross_entropy_with_logits(logits, chances, reduction="none") - least


if __name__ == "__main__":
    main()
