"""The Celery application and the use cases that move a document from queued to finished."""
