"""Problems as values, and the exceptions that carry them."""
