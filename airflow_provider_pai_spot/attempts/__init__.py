"""
One task instance's jobs: who they belong to, what was stored about them, and what to do with the newest.

Works in the worker, with the sync hook; `follow` is sans-IO and serves the triggerer too. Must not know
operators, sensors or triggers.
"""
