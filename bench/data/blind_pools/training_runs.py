"""Notebook of my language-model training runs."""

import ast
import operator

LOSS = {"otter": 2.41, "heron": 2.18, "lynx": 2.25, "moth": 3.02}
CORPUS = {"otter": "wikidump", "heron": "webmix", "lynx": "webmix", "moth": "tinytales"}
TOKENS = {"wikidump": 4.2, "webmix": 31.0, "tinytales": 0.5}
STEPS = {"otter": 40000, "heron": 120000, "lynx": 90000, "moth": 8000}
BATCH = {"otter": 256, "heron": 512, "lynx": 384, "moth": 64}
PARENT = {"heron": "otter", "lynx": "heron"}
PEAK_LR = {"otter": 3e-4, "heron": 1.5e-4, "lynx": 2e-4, "moth": 1e-3}
OPS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}


def final_loss(run: str) -> float:
    """Validation loss at the end of a run."""
    return LOSS[run.lower()]


def corpus_used(run: str) -> str:
    """Get the name of the corpus a run was trained on."""
    return CORPUS[run.lower()]


def corpus_tokens(corpus: str) -> float:
    """Get the size of a corpus, in billions of tokens."""
    return TOKENS[corpus.lower()]


def steps_taken(run: str) -> int:
    """Number of optimizer steps of a run."""
    return STEPS[run.lower()]


def batch_size(run: str) -> int:
    """Sequences per batch."""
    return BATCH[run.lower()]


def initialised_from(run: str) -> str:
    """Name of the run whose checkpoint this run started from."""
    return PARENT[run.lower()]


def peak_lr(run: str) -> float:
    """Peak learning rate of a run."""
    return PEAK_LR[run.lower()]


def calculate(expression: str) -> float:
    """Evaluate an arithmetic expression, e.g. '3 * (4 + 1)'."""

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPS:
            return OPS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPS:
            return OPS[type(node.op)](value(node.operand))
        raise ValueError(f"not arithmetic: {expression}")

    return value(ast.parse(expression.strip(), mode="eval").body)
