"""Column lineage: which columns of which nodes feed each column of a pipeline.

Two parsers must agree on what a query mentions, and whatever stays in doubt is unknown: never a wrong edge.
"""
