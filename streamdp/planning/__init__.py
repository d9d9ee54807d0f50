"""What will it cost and how accurate will it be: the logic of `plan` and `simulate`."""
