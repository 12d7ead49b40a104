"""One executor per kind of node; none imports another."""
