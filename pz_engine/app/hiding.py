"""Problems that a project's checks raise, without values from outside its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pz_engine.base.hidden_values import HiddenValues
from pz_engine.compile.dag import CompiledProject
from pz_engine.errors.diagnostics import Diagnostic
from pz_engine.errors.exceptions import PzValidationError


@contextmanager
def hiding_values(compiled: CompiledProject) -> Iterator[None]:
    """Raise the problems of the block with such values replaced by their names.

    Raises:
        PzValidationError: the block raised it.
    """
    try:
        yield
    except PzValidationError as error:
        raise PzValidationError([hidden_problem(each, compiled.hidden) for each in error.errors]) from None


def hidden_problem(problem: Diagnostic, hidden: HiddenValues) -> Diagnostic:
    """Return a problem whose texts show no such value."""
    hint = hidden.hide(problem.hint) if problem.hint is not None else None
    return replace(problem, message=hidden.hide(problem.message), hint=hint)
