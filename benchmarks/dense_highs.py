"""A dense LP handed straight to HiGHS: what a specialist writes by hand, for suites to compare with."""

import highspy
import numpy as np


def dense_highs(gains, upper, matrix, limits):
    """Max gains x over 0 <= x <= upper with matrix x <= limits, ready to run."""
    rows, columns = matrix.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.sense_ = columns, rows, highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = gains, np.zeros(columns), np.full(columns, upper)
    lp.row_lower_, lp.row_upper_ = np.full(rows, -np.inf), limits
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(rows + 1) * columns
    lp.a_matrix_.index_ = np.tile(np.arange(columns), rows)
    lp.a_matrix_.value_ = matrix.ravel()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(lp)
    return highs
