"""The bounded queue between readers and the ingest.

All partitions are read at once into a queue of four batches; a full queue blocks the readers. One partition's fault
stops its siblings, and the genuine fault is reported, never the cancellation it caused.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pz_engine.base.cancellation import Cancelled, CancelToken
from pz_engine.connectors.api import BatchOptions, Partition
from pz_engine.model.run import ChannelTimings

_SLOTS = 4
_POLL_SECONDS = 0.1


class Channel:
    """Pumps partitions into one consumer."""

    def __init__(self, partitions: Sequence[Partition], options: BatchOptions, cancel: CancelToken) -> None:
        self._partitions = partitions
        self._options = options
        self._stop = CancelToken(cancel)
        self._queue: queue.Queue[Any] = queue.Queue(maxsize=_SLOTS)
        self._guard = threading.Lock()
        self._fault: BaseException | None = None
        self._producer_stall = 0.0
        self._consumer_stall = 0.0

    @property
    def timings(self) -> ChannelTimings:
        """Time each side waited so far."""
        return ChannelTimings(int(self._producer_stall * 1000), int(self._consumer_stall * 1000))

    def drain(self, consume: Callable[[Any], None]) -> None:
        """Read every partition and hand each batch to `consume`, in the calling thread.

        Raises:
            Cancelled: the node was cancelled.
            Exception: the first genuine fault of a reader or of `consume`.
        """
        readers = [
            threading.Thread(target=self._pump, args=(partition,), name=f"pz-read-{index}", daemon=True)
            for index, partition in enumerate(self._partitions)
        ]
        for reader in readers:
            reader.start()
        try:
            self._consume(consume, len(readers))
        except BaseException as error:
            self._record(error)
        finally:
            self._stop.set()
            self._empty_until_done(readers)
            self._stop.detach()
        if self._fault is not None:
            raise self._fault

    def _consume(self, consume: Callable[[Any], None], open_readers: int) -> None:
        while open_readers:
            started = time.monotonic()
            try:
                item = self._queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                self._stop.raise_if_set()
                continue
            finally:
                self._consumer_stall += time.monotonic() - started
            if item is None:
                open_readers -= 1
            else:
                self._stop.raise_if_set()
                consume(item)

    def _pump(self, partition: Partition) -> None:
        try:
            for batch in partition.read(self._options, self._stop):
                self._put(batch)
        except BaseException as error:
            self._record(error)
            self._stop.set()
        finally:
            self._put(None, even_when_stopped=True)

    def _put(self, item: Any, *, even_when_stopped: bool = False) -> None:
        started = time.monotonic()
        while True:
            try:
                self._queue.put(item, timeout=_POLL_SECONDS)
                break
            except queue.Full:
                if not even_when_stopped:
                    self._stop.raise_if_set()
        with self._guard:
            self._producer_stall += time.monotonic() - started

    def _record(self, error: BaseException) -> None:
        with self._guard:
            if self._fault is None or (isinstance(self._fault, Cancelled) and not isinstance(error, Cancelled)):
                self._fault = error

    def _empty_until_done(self, readers: Sequence[threading.Thread]) -> None:
        """Keep taking batches so that blocked readers can finish; their own waits are bounded."""
        while any(reader.is_alive() for reader in readers):
            try:
                self._queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
