"""How an answer is drawn: from cell counts, a prior and a sharpness to points of the grid."""
