"""One figure of the paper at a tenth of its size: normal input, regret and violation over T.

`osilp reproduce --quick` runs all figures at full size in several minutes and judges every claim; this one takes
seconds and shows the three things that decide how the figure reads: the scale of Phi, the benchmark, and violation at
single points beside the paper's v.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from osilp_pyomo.reproduction import Experiment, run_experiment

if __name__ == "__main__":
    figure = Experiment("normal-T", "normal", "horizon", (100, 400), fixed=200)
    with TemporaryDirectory() as folder:
        study = run_experiment(figure, trials=4, seed=0, executor=None, folder=Path(folder))
    columns = ["relative_regret_discretized", "relative_regret_projected", "relative_violation", "test_violation"]
    table = study.table(columns)
    print(f"{figure.title}\n")
    print(table[table["guard"] != "pointwise"].to_string(index=False))
    print("\nAs printed, Phi is not normalised and the dual swings between 0 and far too much: regret does not fall.")
    print("As corrected, regret against R*_Phi falls; against R*_m it is negative, for single rows are overrun.")
