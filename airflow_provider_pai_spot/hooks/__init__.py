"""Talking to DLC: connection, credentials, one call, retries, error translation."""
