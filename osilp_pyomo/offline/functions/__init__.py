"""Decisions that are functions, in numbers: their values, draws of what they react to, and rows that are equations."""
