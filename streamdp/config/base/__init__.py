"""The parts that sections are made of, and the keys all releases share; no kind is known here."""
