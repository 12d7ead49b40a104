"""What an opened side of a connection is given before it is asked anything: a gate, and a way to say something."""

from __future__ import annotations

from collections.abc import Callable

from pz_engine.base.clock import SystemClock
from pz_engine.compile.dag import CompiledProject
from pz_engine.connectors.api import GatedOperations, NoticeEmitter, Sink, Source
from pz_engine.model.policies import RetryPolicy
from pz_engine.resilience.operation_gate import OperationGate
from pz_engine.resilience.rate_limit import Pacer


def equip(side: Source | Sink, compiled: CompiledProject, connection: str, note: Callable[[str], None]) -> None:
    """Hand over a gate that tries each operation once, and take notices as notes."""
    if isinstance(side, GatedOperations):
        clock = SystemClock()
        pacer = Pacer(compiled.connections[connection].rate_limit, monotonic=clock.monotonic, now=clock.now)
        side.use_gate(OperationGate(pacer, RetryPolicy(max_attempts=1), lambda: 0.0))
    if isinstance(side, NoticeEmitter):
        side.use_notices(lambda _level, text: note(text))
