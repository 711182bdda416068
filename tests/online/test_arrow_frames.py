"""Arrivals in frames of Polars and Arrow: the same numbers as in those of pandas, and refusals that name what came."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from models import packing

import osilp_pyomo as osilp
from osilp_pyomo import errors


class Stream:
    """A table of which nothing is known but that it speaks Arrow."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


KINDS = {
    "polars": lambda frame: pl.DataFrame(frame.to_dict("list")),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "stream": lambda frame: Stream(pa.Table.from_pandas(frame, preserve_index=False)),
}


@pytest.fixture(scope="module")
def program():
    m = packing()
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))


@pytest.fixture
def frame(program):
    return program.data.reset_index(drop=True)


@pytest.mark.parametrize("kind", KINDS)
def test_replay_steps_and_the_optimum_are_those_of_pandas(program, frame, kind):
    given = KINDS[kind](frame)
    expected = program.replay(osilp.Resolve(), data=frame)
    np.testing.assert_array_equal(program.replay(osilp.Resolve(), data=given).decisions, expected.decisions)
    pd.testing.assert_frame_equal(program.controller().steps(given), program.controller().steps(frame))
    assert len(program.controller().steps(KINDS[kind](frame.iloc[:0]))) == 0
    assert program.solve_offline(given).objective == program.solve_offline(frame).objective


@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_warm_starts_and_chunks_are_those_of_pandas(program, frame, kind):
    given = KINDS[kind](frame)
    for told in (given, osilp.Forecast(given), osilp.Forecast(given, time="value")):
        of_pandas = frame if told is given else osilp.Forecast(frame, time=told.time)
        np.testing.assert_array_equal(
            program.replay(osilp.Resolve(), forecast=told).decisions,
            program.replay(osilp.Resolve(), forecast=of_pandas).decisions,
        )
    np.testing.assert_array_equal(
        program.controller(osilp.Resolve(), warm_start=given).dual,
        program.controller(osilp.Resolve(), warm_start=frame).dual,
    )
    halves = [frame.iloc[:3], frame.iloc[3:].reset_index(drop=True)]
    found = program.replay(osilp.Greedy(), data=[KINDS[kind](half) for half in halves])
    assert found.objective == pytest.approx(program.replay(osilp.Greedy(), data=frame).objective)
    assert [len(each) for each in osilp.Chunks(given, rows=4).frames()][:1] == [4]


@pytest.mark.parametrize("kind", KINDS)
def test_compare_takes_them_as_data_and_from_a_sampler(program, frame, kind):
    given = KINDS[kind](frame)
    options = {"trials": 2, "order": "permutation", "progress": False}
    ours = osilp.compare(program, osilp.Greedy(), data=given, **options)
    expected = osilp.compare(program, osilp.Greedy(), data=frame, **options)
    np.testing.assert_array_equal(ours.runs["reward"], expected.runs["reward"])
    drawn = osilp.compare(program, osilp.Greedy(), sampler=lambda rng, horizon: KINDS[kind](frame), progress=False)
    assert drawn.runs["reward"][0] == pytest.approx(program.replay(osilp.Greedy(), data=frame).objective)


def test_a_reader_of_batches_is_read_chunk_by_chunk(program, frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=5))
    found = program.replay(osilp.Greedy(), data=reader)
    assert found.objective == pytest.approx(program.replay(osilp.Greedy(), data=frame).objective)


def test_past_values_make_the_same_set(frame):
    many = pd.concat([frame] * 40, ignore_index=True)
    ours, expected = (osilp.sets.from_data(each, 0.9) for each in (KINDS["polars"](many), many))
    assert ours.parameter_bounds == expected.parameter_bounds


def test_what_is_no_table_of_numbers_is_refused(program, frame):
    with pytest.raises(errors.DataError) as error:
        program.replay(osilp.Greedy(), data=pl.Series("value", [0.5]))
    assert str(error.value).startswith("The Series of polars cannot be read as a table (")
    assert str(error.value).endswith("); give a DataFrame, with one row each.")
    with pytest.raises(errors.DataError) as error:
        program.replay(osilp.Greedy(), data=pl.DataFrame({"value": [0.5, None], "place": [0.1, 0.2]}))
    assert str(error.value) == "Arrivals: 'value' must be a finite number (got nan in row 1)."
    with pytest.raises(errors.DataError) as error:
        program.replay(osilp.Greedy(), data=KINDS["polars"](frame).lazy())
    assert str(error.value) == (
        "Arrivals must come as a DataFrame, one row each (got LazyFrame, which is to be collected first)."
    )
