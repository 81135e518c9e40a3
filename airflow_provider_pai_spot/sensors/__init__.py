"""The sensor: the second half of the two-task form."""
