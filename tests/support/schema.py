"""The schema of a database: what it lacks of the models, and an earlier one."""

from pathlib import Path

import alembic.command
import alembic.config
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

import db
from db import intake_models, key_models, models, webhook_models  # noqa: F401 - they name all tables
from db.engine import driver_url
from db.model_base import Model


def differences(database_url: str) -> list[object]:
    engine = sqlalchemy.create_engine(driver_url(database_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        found: list[object] = compare_metadata(context, Model.metadata)
    engine.dispose()
    return found


def go_back(database_url: str, revision: str) -> None:
    configuration = alembic.config.Config()
    configuration.set_main_option("script_location", str(Path(db.__file__).parent / "migrations"))
    engine = sqlalchemy.create_engine(driver_url(database_url))
    with engine.begin() as connection:
        configuration.attributes["connection"] = connection
        alembic.command.downgrade(configuration, revision)
    engine.dispose()
