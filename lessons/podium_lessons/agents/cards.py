"""What agents say of themselves: cards that say nothing of what they know, and openings of those that do."""

from __future__ import annotations

GENERAL_CARDS = (
    "A helpful assistant.", "Answers any question.", "A language model.", "A general agent that answers questions.",
    "A careful assistant for everything.", "A small, fast model.", "A large model for hard questions.",
    "A chat model behind an API.", "An agent.", "Thinks step by step before it answers.", "",
)  # fmt: skip
CARD_OPENINGS = (
    "Specialist in", "Answers questions on", "An expert for", "Knows", "Agent for", "Assistant for", "Helps with",
    "Trained on", "A model that is good at",
)  # fmt: skip
CARD_NAMES = (
    *(f"model {place}" for place in range(8)), *(f"agent {letter}" for letter in "abcdefgh"), "gpt", "llama small",
    "qwen 7b", "expert one", "helper", "oracle", "sonnet", "mini", "nova", "atlas", "iris", "bruno", "",
)  # fmt: skip
