"""Resumes a write whose destination confirms rows before the commit.

Only what the destination confirmed is ever remembered, and only for exactly these rows: any change of the relation makes
the delivery start from its beginning.
"""

from __future__ import annotations

import contextlib

from pz_engine.compile.dag import SinkWriteNode
from pz_engine.connectors.api import CheckpointingSession, WriteSession
from pz_engine.execute.context import Attempt
from pz_engine.execute.ledgers.delivery_ledger import Delivery, DeliveryLedger
from pz_engine.execute.ledgers.fingerprint import fingerprint_of
from pz_engine.execute.ledgers.partition_ledger import META_SCHEMA
from pz_engine.execute.prior_database import ALIAS


class ResumableDelivery:
    """One attempt of a checkpointing write."""

    def __init__(self, attempt: Attempt, node: SinkWriteNode, relation: str, session: CheckpointingSession) -> None:
        self._attempt = attempt
        self._node = node
        self._session = session
        attempt.context.ledgers.ensure(attempt.cursor)
        self._fingerprint = fingerprint_of(attempt.cursor, relation)
        self._ledger = DeliveryLedger(attempt.cursor, node.id)
        self.resumed_rows = self._resume()
        """Leading rows that the destination already has."""

        self._acknowledged = self.resumed_rows

    @property
    def acknowledged_rows(self) -> int:
        """Rows the destination has confirmed so far."""
        return self._acknowledged

    def look(self) -> None:
        """Ask the destination what it has confirmed."""
        self._acknowledged = max(self._acknowledged, self._session.acknowledged_rows())

    def keep(self) -> None:
        """After a failure: ask once more, and remember what was confirmed beyond where this attempt began.

        Losing this is safe, so nothing is raised; it runs without the attempt's cancellation.
        """
        with contextlib.suppress(Exception):
            self.look()
        if self._acknowledged <= self.resumed_rows:
            return
        with contextlib.suppress(Exception), self._attempt.context.session.cursor() as cursor:
            DeliveryLedger(cursor, self._node.id).write(Delivery(self._acknowledged, self._fingerprint))

    def forget(self) -> None:
        """After a commit: the row has no use any more; failing to remove it fails nothing."""
        with contextlib.suppress(Exception):
            self._ledger.clear()

    def _resume(self) -> int:
        kept = self._ledger.read()
        if kept is None:
            return 0
        is_of_these_rows = kept.fingerprint == self._fingerprint and 0 < kept.rows <= self._fingerprint.rows
        if is_of_these_rows and self._session.try_resume_from(kept.rows):
            return kept.rows
        self._ledger.clear()
        return 0


def resumable(attempt: Attempt, node: SinkWriteNode, relation: str, session: WriteSession) -> ResumableDelivery | None:
    """Return the resumable side of a session, or None when its destination confirms nothing before the commit."""
    if not isinstance(session, CheckpointingSession):
        return None
    return ResumableDelivery(attempt, node, relation, session)


def carry_over(attempt: Attempt, node: SinkWriteNode, relation: str) -> None:
    """Remember here what the continued run's destination had confirmed, when it was of exactly these rows.

    Before anything of the write can fail: a retry of this run then still knows of it.
    """
    context, cursor = attempt.context, attempt.cursor
    if context.resume is None or node.id not in context.resume.deliveries or context.prior is None:
        return
    if not context.prior.is_usable(cursor):
        return
    with context.prior.falling_back(f"the delivery of {node.name} starts from its beginning"):
        if not context.prior.has_table(cursor, META_SCHEMA, "sink_deliveries"):
            return
        found = DeliveryLedger(cursor, node.id, ALIAS).read()
        if found is None or found.fingerprint != fingerprint_of(cursor, relation):
            return
        context.ledgers.ensure(cursor)
        ledger = DeliveryLedger(cursor, node.id)
        if ledger.read() is None:
            ledger.write(found)
