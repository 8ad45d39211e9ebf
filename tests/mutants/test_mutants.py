"""Judging the mutants takes minutes and is no part of the tests; that each can still be made, is."""

import ast

import pytest

from tests.mutants.run import ROOT, Mutant, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_engine_as_it_is(mutant: Mutant) -> None:
    ast.parse(mutant.made_in(ROOT))
