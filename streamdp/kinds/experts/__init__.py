"""Release kind `experts`: online learning from noisy losses."""
