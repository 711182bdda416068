"""
One figure of the paper, at a tenth of its size
===============================================

Online optimization. Normal input, regret and violation over T, as in the numerical section of Zong and Jiang
(arXiv:2603.16200). ``osilp reproduce --quick`` runs all figures at full size and judges every claim; this one takes
seconds, and shows what decides how the figure reads: the scale of Phi, the benchmark, and violation at single points
beside the paper's v.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from osilp_pyomo.paper.experiments import Experiment, run_experiment

figure = Experiment("normal-T", "normal", "horizon", (100, 400), fixed=200)
with tempfile.TemporaryDirectory() as folder:
    study = run_experiment(figure, trials=4, seed=0, executor=None, folder=Path(folder))
columns = ["relative_regret_discretized", "relative_regret_projected", "relative_violation", "test_violation"]
table = study.table(columns)
print(f"{figure.title}\n")
print(table[table["guard"] != "pointwise"].to_string(index=False))
print("\nAs printed, Phi is not normalised and the dual swings between 0 and far too much: regret does not fall.")
print("As corrected, regret against R*_Phi falls; against R*_m it is negative, for single rows are overrun.")
study.plot("regret")
plt.show()
