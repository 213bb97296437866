"""scopes, rotation, last use and request rates of API keys."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Keys of before may do what they could; so may those that an earlier release makes meanwhile.
    op.add_column(
        "api_keys",
        sa.Column(
            "scopes",
            ARRAY(sa.Text()),
            server_default=sa.text("'{read,write,webhooks}'::text[]"),
            nullable=False,
        ),
    )
    op.create_check_constraint(
        op.f("ck_api_keys_scopes_known"),
        "api_keys",
        "cardinality(scopes) > 0 AND scopes <@ '{read,write,webhooks}'::text[]",
    )
    op.add_column("api_keys", sa.Column("previous_secret_sha256", sa.Text(), nullable=True))
    for name in ("previous_secret_until", "last_used_at"):
        op.add_column("api_keys", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    op.add_column("api_keys", sa.Column("max_requests_per_minute", sa.Integer(), nullable=True))


def downgrade() -> None:
    # An earlier release knows no scopes: a key that has not all of them would be able to do more.
    op.execute(
        "UPDATE api_keys SET revoked_at = now()"
        " WHERE revoked_at IS NULL AND NOT scopes @> '{read,write,webhooks}'::text[]"
    )
    for name in (
        "max_requests_per_minute",
        "last_used_at",
        "previous_secret_until",
        "previous_secret_sha256",
    ):
        op.drop_column("api_keys", name)
    op.drop_constraint(op.f("ck_api_keys_scopes_known"), "api_keys", type_="check")
    op.drop_column("api_keys", "scopes")
