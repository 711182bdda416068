"""dot: coefficients times variables, and what may be given to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_types
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.indexed_component_slice import IndexedComponent_slice
from pyomo.core.base.var import Var
from pyomo.core.expr import numeric_expr as numeric

from osilp_pyomo.model.arrays.blocks import TermBlock, light_node
from osilp_pyomo.model.arrays.expressions import ArrayError, ArrayExpression, Labels, align, as_array, label_index
from osilp_pyomo.model.arrays.trees import ArrayLeaf, ArrayProduct, is_expression, members_of, tree_leaves


def dot(coefficients: Any, variables: Any) -> Any:
    """Coefficients times variables, summed: ``sum(c * x)`` as one light node of a Pyomo expression.

    Parameters
    ----------
    coefficients : array, Series, Arrow column, Param or array expression
        One number for each variable, or one formula of the index for all of them, such as
        ``np.exp(-((u - places) / width) ** 2)`` or ``nominal + xi @ factors``. Numbers are copied; mutable Params and
        Profiles are read when the model is solved. What has labels (a Series, a dict, a Param) is aligned with the
        variables by them.
    variables : Var, slice, list or Series of variables
        In the order of their Set.

    Returns
    -------
    Pyomo expression
        Stands beside other terms, in Constraints, Objectives, named Expressions and stages. Writers, solvers and
        transformations see ordinary terms.

    Raises
    ------
    DeclarationError
        Where lengths or labels differ, an entry is no finite number, or something is no variable.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(["a", "b", "c"], bounds=(0, 1))
    >>> places = np.array([0.2, 0.5, 0.9])
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def usage(m, u):
    ...     return osilp.dot(np.exp(-(((u - places) / 0.1) ** 2)), m.x) <= 0.5
    >>> m.reward = pyo.Objective(expr=osilp.dot(pd.Series({"c": 3.0, "b": 2.0, "a": 1.0}), m.x), sense=pyo.maximize)
    >>> round(osilp.solve(m).objective, 4)
    2.9998
    """
    try:
        return _dot(coefficients, variables)
    except ArrayError as error:
        raise ArrayError(f"dot: {error}") from None


def _dot(coefficients: Any, variables: Any) -> Any:
    members, labels, name = _variables(variables)
    array = as_array(coefficients)
    if not array.ndim and len(members) == 1:
        # Pyomo makes one expression of a Param times an array of one number.
        array = ArrayExpression(array.tree, (1,))
    if array.ndim != 1:
        had = "a single coefficient" if not array.ndim else f"coefficients of the shape {array.shape}"
        raise ArrayError(f"expected an array with one coefficient for each variable of {name} (got {had}).")
    if array.labels is not None:
        if labels is None:
            raise ArrayError(
                "its coefficients have labels and its variables have none; give the coefficients by .to_numpy(), or "
                "the variables as a Var or a Series."
            )
        if array.labels is not labels:
            order = align(array.labels, labels, f"the coefficients and the variables of {name}")
            if np.any(order != np.arange(len(order))):
                array = array.take(order)
    if array.shape[0] != len(members):
        raise ArrayError(
            f"there are {array.shape[0]} coefficients and {len(members)} variables of {name}; give one coefficient "
            "for each variable."
        )
    if not (array.tree.__class__ in native_types or array.tree.is_numeric_type()):
        raise ArrayError(f"its coefficients are relations ({array.tree}); say what holds by np.where.")
    _refuse_numbers(array)
    _refuse_variables(array)
    if not members:
        return 0
    return numeric.SumExpression([light_node(TermBlock(array.tree, members))])


def _refuse_numbers(array: ArrayExpression) -> None:
    """Refuse what is not a finite number."""
    for leaf in tree_leaves(array.tree):
        if leaf.__class__ is ArrayProduct:
            numbers = leaf.matrix
        elif leaf.__class__ is ArrayLeaf:
            numbers = leaf.values if leaf.numbers else _bare_numbers(leaf.values)
        else:
            continue
        if np.isfinite(numbers).all():
            continue
        place = np.argwhere(~np.isfinite(numbers))[0]
        at = f" ({label_index(array.labels)[place[-1]]!r})" if array.labels is not None else ""
        raise ArrayError(
            f"entry {', '.join(map(str, place))}{at} of its array is {numbers[tuple(place)]}; every coefficient must "
            "be a finite number."
        )


def _bare_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """The numbers among Params and expressions; others count as zero, and a relation is refused."""
    for entry in values.flat:
        if not (entry.__class__ in native_types or hasattr(entry, "curve_table") or entry.is_numeric_type()):
            raise ArrayError(f"its coefficients hold a relation ({entry}); say what holds by np.where.")
    flat = [float(entry) if entry.__class__ in native_types else 0.0 for entry in values.flat]
    return np.array(flat).reshape(values.shape)


def _refuse_variables(array: ArrayExpression) -> None:
    """Refuse coefficients that hold variables."""
    for leaf in tree_leaves(array.tree):
        parts: Sequence[Any] = leaf.entries if leaf.__class__ is ArrayProduct else (leaf,)
        if leaf.__class__ is ArrayLeaf:
            parts = () if leaf.numbers else leaf.values.ravel().tolist()
        # Leaves of one class are alike in this: of Params, one is looked at.
        examples = dict(zip(map(type, parts), parts, strict=True))
        for part in parts if any(map(is_expression, examples.values())) else examples.values():
            for each in tree_leaves(part):
                if getattr(each, "is_variable_type", bool)():
                    raise ArrayError(
                        f"its coefficients hold the variable '{each.name}'; they must be data. A product of variables "
                        "is not linear; for a fixed variable use a mutable Param."
                    )


def _variables(given: Any) -> tuple[tuple[Any, ...], Labels | None, str]:
    """The variables one by one, their labels (or None), and what to call them."""
    name = f"'{given.name}'" if isinstance(given, IndexedComponent) else "the list"
    labels: Labels | None = None
    if isinstance(given, IndexedComponent_slice):
        items = _slice_items(given)
        labels, members = [label for label, _ in items], [member for _, member in items]
        name = f"'{given}'"
    elif isinstance(given, IndexedComponent):
        if given.ctype is Var:
            return (tuple(members_of(given)), given.index_set(), name) if given.is_indexed() else ((given,), None, name)
        members = members_of(given) if given.is_indexed() else [given]
    elif isinstance(given, pd.Series):
        labels, members, name = given.index, given.tolist(), "the Series"
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes) and getattr(given, "shape", None) != ():
        members = list(given)
    else:
        raise ArrayError(f"expected a Var, a slice, a list or a Series of variables (got {type(given).__name__}).")
    for place, member in enumerate(members):
        if not (hasattr(member, "is_variable_type") and member.is_variable_type()):
            shown = str(member) if hasattr(member, "is_expression_type") else repr(member)
            raise ArrayError(
                f"entry {place} of its variables is {shown[:60]}, a {type(member).__name__} and no variable; put "
                "expressions beside the dot, multiplied by hand."
            )
    owners = {id(each.parent_component()): each.parent_component() for each in members}
    if labels is None and len(owners) == 1 and next(iter(owners.values())).is_indexed():
        labels = [each.index() for each in members]
    return tuple(members), labels, name


def _slice_items(given: IndexedComponent_slice) -> list[tuple[Any, Any]]:
    """Labels and members of a slice; where one index of a product of sets is open, without a walk through them all."""
    first, *more = given._call_stack
    if not more and isinstance(first[1], tuple) and len(first[1]) == 4:
        component, fixed, sliced, ellipsis = first[1]
        factors = list(component.index_set().subsets(expand_all_set_operators=False))
        plain = ellipsis is None and len(sliced) == 1 and len(fixed) + 1 == len(factors) > 1
        if plain and all(factor.dimen == 1 and factor.isfinite() for factor in factors):
            ((place, _),) = sliced.items()
            head = tuple(fixed[k] for k in range(place))
            tail = tuple(fixed[k] for k in range(place + 1, len(factors)))
            keys = ((label, (*head, label, *tail)) for label in factors[place])
            return [(label, component[key]) for label, key in keys if key in component]
    return list(given.wildcard_items())


def array(values: Any) -> Any:
    """A Param, a Series or an array as an array expression, for formulas over arrays of data.

    Parameters
    ----------
    values : Param, Series, dict or array
        A Param over a Set becomes an array in the order of the Set; a mutable one is read when the model is solved.

    Returns
    -------
    ArrayExpression
        Takes operators and functions of numpy, and stands in :func:`dot`.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.price = pyo.Param([0, 1], initialize={0: 3, 1: 5}, mutable=True)
    >>> m.cost = pyo.Param([0, 1], initialize={0: 1, 1: 4}, mutable=True)
    >>> m.x = pyo.Var([0, 1], initialize=1)
    >>> profit = osilp.dot(osilp.array(m.price) - m.cost, m.x)
    >>> pyo.value(profit)
    3
    """
    return as_array(values)
