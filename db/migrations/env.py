"""Alembic's entry point: always run on the connection that ``db.migrate`` opened."""

from alembic import context

from db import intake_models, key_models, models, webhook_models  # noqa: F401 - they name all tables
from db.model_base import Model

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Model.metadata,
    compare_server_default=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
