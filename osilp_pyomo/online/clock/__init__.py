"""Arrivals in continuous time: when they come, and how many are still to come until an end.

Holds: how users tell times, and the estimate of the arrivals ahead.
May know: nothing of arrivals but their times.
Gives: times as numbers, and the horizon of now.
"""
