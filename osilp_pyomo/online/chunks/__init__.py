"""Arrivals that are too many for memory: read, replayed and solved a chunk at a time.

Holds: files and streams as arrivals, column blocks on disk, decisions written as they are made.
May know: stages, hindsight, controllers and runs.
Gives: a run or an optimum in memory that does not grow with the arrivals.
"""
