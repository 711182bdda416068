"""Decisions that are functions: their declaration, what they are at a point, and equations between them."""
