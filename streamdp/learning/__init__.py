"""Learners of quantiles, from past releases alone; `kinds.quantiles.learners` names them all."""
