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
# What stands on the cards of other agents that may be asked anything: who runs them, where, at what price; no field.
VAGUE_CARDS = (
    "Expert number three of the panel.", "Specialist of the second team.", "Stand-in of the night shift.",
    "Simulated colleague from the test bench.", "Expert.", "Made for the trial: nothing real.",
    "Agent of this pool.", "Adviser on duty.", "Actor of a rehearsal, no live model.", "Respondent of the survey.",
    "Expert under another name.", "Added by Ana last week.", "Runs on the machine in the basement.",
    "Our own fine-tuned model.", "Do not use in production yet.", "Second endpoint, same provider.",
    "The one with the long context window.", "Quantized to four bits.", "Replies in full sentences.",
    "Cheap and quick.", "Slow but thorough.", "Expensive; ask it last.", "Fallback when the others are down.",
    "Experimental checkpoint.", "Baseline of the study.", "Replays recorded answers; not a live service.",
    "Stands in for a model in tests.", "A dummy of the demo.", "Made up for an experiment.", "Virtual colleague.",
    "Member of the panel.", "One of three voters.", "Writes short answers.", "Chat completions, temperature 0.",
    "OpenAI-compatible endpoint.", "7B parameters, instruction tuned.", "Mixture of experts.",
    "Hosted in Frankfurt.", "Answers in English and German.", "Trained until March.",
    "Reasoning model with hidden thoughts.", "A person who answers by mail.", "Knows a bit of everything.",
    "Try this one first.", "Rate limited to ten calls a minute.", "New.", "To be described.", "No description.",
    "Worker of the pool.", "Language model without tools.", "Distilled from a larger model.",
)  # fmt: skip
