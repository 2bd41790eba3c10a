"""The old address of what is in trainer/methods/grpo now, for reward files of version 0.1."""
