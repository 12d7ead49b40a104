"""Reads the arguments that hosts take as text."""

from __future__ import annotations

from pz_engine.config.vars_option import parse_vars

__all__ = ["parse_vars"]
