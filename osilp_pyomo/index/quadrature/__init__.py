"""Integrals of formulas: adaptive rules for many functions at once, and what they go over.

Holds: Gauss-Kronrod rules on pieces that are halved, boxes, points with weights and densities.
May know: formulas, curves and enclosures of its room.
Gives: integrals with estimates of their errors, and integrals as functions of data, which stand where curves do.
"""
