"""Celery task declarations: ids in, one call each."""
