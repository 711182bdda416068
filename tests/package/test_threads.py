"""Formulas evaluated in threads: the same numbers to the last bit, whoever asks, and whatever happens in between."""

import os
import threading

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import _threads
from osilp_pyomo.demo import demo_model
from osilp_pyomo.model.trace import trace_model


@pytest.fixture(params=[2, 5])
def several(request):
    _threads.use_threads(request.param)
    yield request.param
    _threads._threads = None


def test_values_come_in_the_order_of_the_parts(several):
    parts = list(range(100))
    assert list(_threads.in_threads(lambda k: (k, threading.get_ident()), parts)) != []
    assert [value for value, _ in _threads.in_threads(lambda k: (k * k, 0), parts)] == [k * k for k in parts]
    assert list(_threads.in_threads(str, [])) == []
    assert list(_threads.in_threads(str, [7])) == ["7"]


def test_an_error_reaches_whoever_asked_and_later_work_goes_on(several):
    def fails(k):
        if k == 3:
            raise ValueError("three")
        return k

    found = _threads.in_threads(fails, range(10))
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(found)
    assert list(_threads.in_threads(fails, range(3))) == [0, 1, 2]


def test_whoever_needs_only_some_leaves_nothing_behind(several):
    done = []
    found = _threads.in_threads(done.append, range(1000))
    next(found)
    found.close()
    assert len(done) < 1000
    assert list(_threads.in_threads(abs, [-1, -2])) == [1, 2]


def test_work_within_work_ends(several):
    """Threads that wait for threads of the same few would wait for ever."""
    outer = _threads.in_threads(lambda k: sum(_threads.in_threads(abs, range(k))), range(20))
    assert list(outer) == [sum(range(k)) for k in range(20)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_process_that_was_forked_has_threads_of_its_own(several):
    assert list(_threads.in_threads(abs, range(5))) == list(range(5))
    child = os.fork()
    if not child:
        os._exit(0 if list(_threads.in_threads(abs, range(5))) == list(range(5)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_rows_and_answers_are_those_of_one_thread(several):
    m = demo_model(arrivals=3000)
    family = trace_model(m).problem.families[0]
    points, x = np.linspace(0, 1, 700)[:, None], np.random.default_rng(0).uniform(size=3000)
    many, result = family.activity(points, x), osilp.solve(m, load=False)
    matrix = family.matrix(points)
    _threads.use_threads(1)
    assert np.array_equal(many, family.activity(points, x))
    assert np.array_equal(matrix, family.matrix(points))
    alone = osilp.solve(m, load=False)
    assert (alone.objective, alone.bound) == (result.objective, result.bound)
    assert alone.proof["boxes"].tolist() == result.proof["boxes"].tolist()


def test_proofs_of_smooth_rows_and_of_rows_with_kinks_are_those_of_one_thread(several):
    rng = np.random.default_rng(1)
    for kinked in (False, True):
        m = pyo.ConcreteModel()
        m.u, m.v, m.T = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 1)), pyo.RangeSet(0, 299)
        place = rng.uniform(size=(300, 2))
        m.place = pyo.Param(m.T, [0, 1], mutable=True, initialize=lambda m, t, k, place=place: place[t, k])
        m.x = pyo.Var(m.T, bounds=(0, 1))
        m.o = pyo.Objective(expr=sum(m.x.values()), sense=pyo.maximize)

        def use(m, t, u, v, kinked=kinked):
            away = (u - m.place[t, 0]) ** 2 + (v - m.place[t, 1]) ** 2
            return abs(u - m.place[t, 0]) + 0.1 if kinked else pyo.exp(-away / 0.02)

        m.cap = osilp.SemiInfiniteConstraint(
            m.u, m.v, rule=lambda m, u, v, use=use: sum(use(m, t, u, v) * m.x[t] for t in m.T) <= 8 + u + v
        )
        _threads.use_threads(several)
        many = osilp.solve(m, load=False)
        _threads.use_threads(1)
        alone = osilp.solve(m, load=False)
        assert many.proof.drop(columns="seconds").equals(alone.proof.drop(columns="seconds"))
        assert (many.objective, many.bound, many.certified) == (alone.objective, alone.bound, alone.certified)


@pytest.mark.parametrize(("said", "count"), [("3", 3), ("1", 1)])
def test_the_environment_says_how_many(monkeypatch, said, count):
    monkeypatch.setenv("OSILP_THREADS", said)
    assert _threads.threads() == count


@pytest.mark.parametrize("said", ["", "0", "-2", "many"])
def test_what_is_no_number_of_threads_says_nothing(monkeypatch, said):
    monkeypatch.delenv("OSILP_THREADS", raising=False)
    usual = _threads.threads()
    monkeypatch.setenv("OSILP_THREADS", said)
    assert _threads.threads() == usual >= 1
