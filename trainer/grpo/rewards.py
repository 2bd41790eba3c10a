"""The names of trainer/methods/grpo/rewards.py under their old address, for reward files written before it moved."""

from trainer.methods.grpo.rewards import *  # noqa: F403
