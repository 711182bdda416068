"""Curves: functions of the index as data, read and enclosed, and the spaces of functions that decisions are made of."""
