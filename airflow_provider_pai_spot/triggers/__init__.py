"""Waiting in the triggerer. Must never block its event loop, nor touch the task state store (it hangs there)."""
