"""How an answer reads for a person: by the shape of the outputs, and by what their workers declare. No model."""
