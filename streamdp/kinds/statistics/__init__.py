"""The release kind `statistics`: counts, histograms, sums, means and variances of each batch."""
