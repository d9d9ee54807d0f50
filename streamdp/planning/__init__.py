"""Cost and accuracy of releases before they are made: the logic of `plan` and `simulate`."""
