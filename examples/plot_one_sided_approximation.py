"""The best polynomial above a function: minimal area, exact, with the points where they touch."""

import pyomo.environ as pyo
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp


def build_model(degree=4):
    m = pyo.ConcreteModel("one-sided approximation")
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(range(degree + 1))
    m.area = pyo.Objective(expr=sum(m.x[k] / (k + 1) for k in m.x))

    @m.SemiInfiniteConstraint(m.u)
    def above(m, u):
        return sum(m.x[k] * u**k for k in m.x) >= pyo.exp(u)

    return m


if __name__ == "__main__":
    model = build_model()
    result = osilp.solve(model)
    print(result)
    print("\nWhere the polynomial touches exp, with the weights of the Radau quadrature:")
    print(result.price.atoms.to_string(index=False))
