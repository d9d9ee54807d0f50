"""What is believed about a quantile before the data is touched."""
