"""What clients may ask of a served model: one file for each API."""
