"""State of every batch, document, chunk and page: the only door to SQLAlchemy."""
