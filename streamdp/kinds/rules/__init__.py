"""Rules: conditions on one record with public parameters, one candidate a choice of parameters."""
