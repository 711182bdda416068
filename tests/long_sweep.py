"""A solve from a file that takes a while, to be killed in the middle: ``python long_sweep.py FOLDER [fast]``."""

import sys
import time
from pathlib import Path

from models import packing

import osilp_pyomo as osilp
from osilp_pyomo.online.chunks import blocks as block_files


def make_program():
    """That of the tests of chunks."""
    m = packing(30, seed=4)
    return osilp.compile_online(m, stages=m.T, horizon=900, basis=osilp.RBF(6), grid=osilp.Midpoint(80))


def main(folder, slowly):
    program = make_program()
    if slowly:
        write = block_files.BlockMaker.write

        def slow(*arguments):
            time.sleep(0.05)
            return write(*arguments)

        block_files.BlockMaker.write = slow
    chunks = osilp.Chunks(folder / "a.parquet", rows=20)
    program.solve_offline(chunks, "projected", cache=folder / "cache", write=folder / "x.parquet", progress=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), len(sys.argv) < 3)
