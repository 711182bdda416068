"""The list of public names is what the package offers, each with a docstring."""

import osilp_pyomo as osilp

PUBLIC = {
    "AccelerateThenRefine", "FixedPrice", "GradientDescent", "Greedy", "MirrorDescent", "OnlineProgram", "Policy",
    "Potential", "Resolve", "SimpleGD", "Study", "StudyInterrupted", "compare", "compile_online", "displays", "load_controller",
    "load_study", "testing", "BSpline", "Bernstein", "Chebyshev", "Dirac", "Functions", "GaussLegendre", "Hat", "Indicator", "Midpoint", "Points",
    "Profile", "RBF", "Random", "Result", "SemiInfiniteConstraint", "Sobol", "Tensor", "__version__", "errors", "plugins",
    "solve", "dro", "scenario", "Cells", "Chunks", "Extremes",
    "evaluate_rows", "plot_rows",
}  # fmt: skip


def test_the_list_is_kept():
    assert set(osilp.__all__) == PUBLIC


def test_every_name_explains_itself():
    for name in PUBLIC - {"__version__"}:
        assert getattr(osilp, name).__doc__, name
