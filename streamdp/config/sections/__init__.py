"""The sections of the configuration besides releases and gates."""
