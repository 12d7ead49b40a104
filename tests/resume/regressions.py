"""Cases that once failed, made small; each names what was wrong."""

from __future__ import annotations

CASES = {
    "watermark passed rows that came to a partition after it was read": (
        '{"sources": [{"name": "s0", "shape": "incremental", "partitions": 2, "checkpoints": false, "ignores_bounds": false}], '
        '"pipelines": [{"sources": ["s0"], "joins": false}], '
        '"sinks": [{"name": "t0", "pipeline": 0, "kind": "transactional", "strategy": "merge"}], '
        '"steps": [{"action": "run", "grows": {"s0": [{"id": "s0-0", "seq": 1, "v": 1}, {"id": "s0-1", "seq": 2, "v": 2}]}, '
        '"faults": [{"point": "page", "action": "fail", "entity": "s0", "skip": 1}], "engine_fault": null}, '
        '{"action": "retry", "grows": {"s0": [{"id": "s0-6", "seq": 3, "v": 3}, {"id": "s0-7", "seq": 4, "v": 4}, '
        '{"id": "s0-8", "seq": 5, "v": 5}, {"id": "s0-9", "seq": 6, "v": 6}]}, "faults": [], "engine_fault": null}], '
        '"attempts": 1}'
    ),
    "confirmed rows forgotten by a retry that made no progress": (
        '{"sources": [{"name": "s0", "shape": "incremental", "partitions": 2, "checkpoints": true, "ignores_bounds": false}], '
        '"pipelines": [{"sources": ["s0"], "joins": false}], '
        '"sinks": [{"name": "t0", "pipeline": 0, "kind": "confirming", "strategy": "append"}], '
        '"steps": [{"action": "run", "grows": {"s0": [{"id": "s0-1", "seq": 3, "v": 57}]}, "faults": [], '
        '"engine_fault": "after_write_batch=raise"}, '
        '{"action": "retry", "grows": {}, "faults": [], "engine_fault": "after_sink_commit=raise"}, '
        '{"action": "retry", "grows": {}, "faults": [], "engine_fault": null}], "attempts": 1}'
    ),
    "confirmed rows forgotten by a retry whose write never began": (
        '{"sources": [{"name": "s0", "shape": "full", "partitions": 0, "checkpoints": false, "ignores_bounds": false}], '
        '"pipelines": [{"sources": ["s0"], "joins": false}], '
        '"sinks": [{"name": "t0", "pipeline": 0, "kind": "confirming", "strategy": "append"}], '
        '"steps": [{"action": "run", "grows": {"s0": [{"id": "a", "seq": 1, "v": 1}, {"id": "b", "seq": 2, "v": 2}]}, '
        '"faults": [{"point": "batch", "action": "half", "entity": "t0", "skip": 0}], "engine_fault": null}, '
        '{"action": "retry", "grows": {}, "faults": [{"point": "begin", "action": "fail", "entity": "t0", "skip": 0}], '
        '"engine_fault": null}, '
        '{"action": "retry", "grows": {}, "faults": [], "engine_fault": null}], "attempts": 1}'
    ),
    "partitions of an earlier run not counted after a second attempt": (
        '{"sources": [{"name": "s0", "shape": "incremental", "partitions": 3, "checkpoints": true, '
        '"ignores_bounds": false}], "pipelines": [{"sources": ["s0"], "joins": false}], "sinks": [{"name": "t0", '
        '"pipeline": 0, "kind": "confirming", "strategy": "append"}], "steps": [{"action": "run", "grows": {"s0": '
        '[{"id": "s0-9", "seq": 8, "v": 75}]}, "faults": [{"point": "page", "action": "fail", "entity": "s0", '
        '"skip": 0}], "engine_fault": null}, {"action": "retry", "grows": {"s0": [{"id": "s0-8", "seq": 11, "v": '
        '9}]}, "faults": [{"point": "partition", "action": "fail_transient", "entity": "s0", "skip": 0}], '
        '"engine_fault": null}], "attempts": 2}'
    ),
}
