"""Gates: the law of the bits of a run, and mistakes that lose more."""
