"""Release kind `workload`: marginals of a public domain by private multiplicative weights."""
