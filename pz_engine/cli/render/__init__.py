"""Everything that writes to a stream."""
