"""`pai-spot`: parses and prints; what it does is done by the rooms below. Nothing is imported here."""
