"""Which batches there are: public windows of time, or files."""
