"""What is believed of a batch: a distribution fitted to released counts. No record is seen."""
