"""The loop over arrivals without Python in it: compiled by numba where it is installed.

Holds: the loop for linear stages, for single decisions and for smooth ones.
May know: arrays only.
Gives: functions of plain arrays, the same with numba and without.
"""
