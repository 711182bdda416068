"""A cone program that grows: columns, rows and cones appended to an ordinary LP, assembled once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.lp.conic import ConeProgram, ConeRows
from osilp_pyomo.lp.finite import FiniteLP

#: Where cones stand among those of a program: the number of their block, and their places there.
ConePlace = tuple[int, IntArray]


@dataclass(eq=False)
class _Entries:
    """Coefficients in coordinates; many small sparse matrices would cost more than a solve."""

    rows: list[IntArray] = field(default_factory=list)
    columns: list[IntArray] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)

    def put(self, values: FloatArray, rows: IntArray, columns: IntArray) -> None:
        """A block of coefficients (rows, columns)."""
        used = values != 0
        self.rows.append(np.broadcast_to(rows[:, None], used.shape)[used])
        self.columns.append(np.broadcast_to(columns, used.shape)[used])
        self.values.append(values[used])

    def matrix(self, shape: tuple[int, int]) -> sparse.csr_array:
        if not self.values:
            return sparse.csr_array(shape)
        rows, columns = np.concatenate(self.rows), np.concatenate(self.columns)
        return sparse.csr_array((np.concatenate(self.values), (rows, columns)), shape=shape)


@dataclass(eq=False)
class _Block:
    """Cones of one kind and size."""

    kind: str
    size: int
    entries: _Entries = field(default_factory=_Entries)
    offsets: list[FloatArray] = field(default_factory=list)
    count: int = 0


class ConeBuilder:
    """Columns, rows and cones of a growing program; those of the LP it begins with come first."""

    def __init__(self, core: FiniteLP) -> None:
        self.core = core
        self.columns = core.columns
        self.rows = len(core.row_lower)
        self._lower: list[FloatArray] = [core.column_lower]
        self._upper: list[FloatArray] = [core.column_upper]
        self._row_lower: list[FloatArray] = [core.row_lower]
        self._row_upper: list[FloatArray] = [core.row_upper]
        self._entries = _Entries()
        own = core.matrix.tocoo()
        self._entries.rows.append(own.row)
        self._entries.columns.append(own.col)
        self._entries.values.append(own.data)
        self._blocks: dict[tuple[str, int], _Block] = {}

    def add_columns(self, count: int, lower: FloatArray | float = -np.inf, upper: float = np.inf) -> IntArray:
        """New columns without cost; return their numbers."""
        numbers = np.arange(self.columns, self.columns + count)
        self.columns += count
        self._lower.append(np.broadcast_to(lower, count).astype(float))
        self._upper.append(np.full(count, upper))
        return numbers

    def add_rows(self, lower: FloatArray | float, upper: FloatArray) -> IntArray:
        """New rows without coefficients; return their numbers."""
        numbers = np.arange(self.rows, self.rows + len(upper))
        self.rows += len(upper)
        self._row_lower.append(np.broadcast_to(lower, len(upper)).astype(float))
        self._row_upper.append(np.asarray(upper, dtype=float))
        return numbers

    def put(self, values: FloatArray, rows: IntArray, columns: IntArray) -> None:
        """A block of coefficients (rows, columns) of rows."""
        self._entries.put(values, rows, columns)

    def add_cones(self, kind: str, size: int, offset: FloatArray, *parts: tuple[FloatArray, IntArray]) -> ConePlace:
        """Cones whose entries are an offset and coefficients (entries, columns) of some columns."""
        block = self._blocks.setdefault((kind, size), _Block(kind, size))
        rows = np.arange(block.count * size, block.count * size + len(offset))
        for values, columns in parts:
            block.entries.put(values, rows, columns)
        block.offsets.append(offset)
        places = np.arange(block.count, block.count + len(offset) // size)
        block.count += len(offset) // size
        return list(self._blocks).index((kind, size)), places

    def program(self) -> ConeProgram:
        """What was built."""
        core = self.core
        extra = self.columns - core.columns
        lp = FiniteLP(
            maximize=core.maximize,
            cost=np.concatenate([core.cost, np.zeros(extra)]),
            offset=core.offset,
            column_lower=np.concatenate(self._lower),
            column_upper=np.concatenate(self._upper),
            integer=np.concatenate([core.integer, np.zeros(extra, dtype=bool)]),
            matrix=self._entries.matrix((self.rows, self.columns)),
            row_lower=np.concatenate(self._row_lower),
            row_upper=np.concatenate(self._row_upper),
        )
        cones = tuple(
            ConeRows(
                block.kind,
                block.size,
                block.entries.matrix((block.count * block.size, self.columns)),
                np.concatenate(block.offsets),
            )
            for block in self._blocks.values()
        )
        return ConeProgram(lp, cones)
