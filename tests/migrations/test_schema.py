"""Migrations lead from an empty database to the models, and no further the second time."""

import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from db.engine import driver_url
from db.migrate import migrate
from db.models import Model


def differences(database_url: str) -> list[object]:
    engine = sqlalchemy.create_engine(driver_url(database_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        found: list[object] = compare_metadata(context, Model.metadata)
    engine.dispose()
    return found


def test_a_migrated_database_has_the_tables_of_the_models(database_url: str) -> None:
    assert differences(database_url) == []


def test_a_database_can_be_migrated_again(database_url: str) -> None:
    migrate(database_url)

    assert differences(database_url) == []
