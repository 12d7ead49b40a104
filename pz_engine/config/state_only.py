"""The `state:` part of a project alone, so that a broken project never blocks its repair."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pz_engine.config.connections_file import load_connections_file
from pz_engine.config.project_file import PROJECT_FILE, read_project_table
from pz_engine.config.reporter import Reporter
from pz_engine.config.state_settings import check_state_connection, parse_state, state_connection_line
from pz_engine.errors.collector import ProblemCollector
from pz_engine.model.project import StateSettings


def load_state_settings(project_dir: Path, *, env: Mapping[str, str]) -> StateSettings:
    """Read `state:`; connections.yml is opened only when a connection is named.

    Raises:
        PzValidationError: every problem of the parts that were read.
    """
    problems = ProblemCollector()
    settings = StateSettings()
    table = read_project_table(project_dir, problems)
    if table is not None:
        node = table.get("state")
        report = Reporter(problems, PROJECT_FILE, PROJECT_FILE)
        settings = parse_state(node, env, report)
        if settings.connection is not None:
            connections = load_connections_file(project_dir, env, problems, only=settings.connection)
            check_state_connection(settings, connections, report, state_connection_line(node))
    problems.raise_if_any()
    return settings
