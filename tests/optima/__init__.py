"""Linear semi-infinite programs whose optimal values are known independently, as tables.

Every row of a table says why the optimal value is what it is: by a closed form, or by an exact finite reformulation
(vertices of a box, enumeration of integer points) evaluated here.  None of the values comes from solving the
semi-infinite program itself.  Many problems are hard for a search over the index: high degrees in powers of u, dozens
of binding points, narrow pieces, thin sets, five dimensions, other units.

The tables are in ``approximation``, ``geometry``, ``moments``, ``robust``, ``searches`` and ``boundaries``, each under
a heading that names its columns; ``models`` builds the programs and ``values`` the numbers.
"""

from optima import approximation, boundaries, geometry, moments, robust, searches
from optima.known import Known

PROBLEMS: list[Known] = [
    *approximation.PROBLEMS,
    *geometry.PROBLEMS,
    *moments.PROBLEMS,
    *robust.PROBLEMS,
    *searches.PROBLEMS,
    *boundaries.PROBLEMS,
]
