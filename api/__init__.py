"""The HTTP API: accepts documents, answers with their state and their results."""
