"""URLs of the PAI console, built from what the operator pushed; imports nothing of this package."""
