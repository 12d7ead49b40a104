"""The guarantees of resuming, compared with an independent model under random faults and real kills."""
