"""Private tests in a row for one price: AboveThreshold and generalized thresholding."""
