"""durable dispatch: lanes, isolation, quotas, uploads under way."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_DUE = sa.text("dispatch_after IS NOT NULL")
_SPLIT_DUE = sa.text("dispatch_after IS NOT NULL AND state IN ('queued', 'splitting')")
_ASSEMBLY_DUE = sa.text("dispatch_after IS NOT NULL AND state IN ('recognizing', 'assembling')")
_TRIED = sa.text("dispatch_after IS NOT NULL AND attempt > excused")
_OPEN = sa.text("state IN ('queued', 'splitting', 'recognizing', 'assembling')")
_DOCUMENT_STATES = (
    "'queued', 'splitting', 'recognizing', 'assembling', 'succeeded', 'partly_succeeded',"
    " 'failed', 'cancelled'"
)
_CHUNK_STATES = "'queued', 'running', 'succeeded', 'failed'"


def upgrade() -> None:
    _extend_documents()
    _extend_chunks()
    op.add_column("api_keys", sa.Column("max_open_pages", sa.Integer(), nullable=True))
    op.add_column("api_keys", sa.Column("max_pages_per_day", sa.Integer(), nullable=True))
    op.create_table(
        "key_usage",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("pages", sa.BigInteger(), nullable=False),
        sa.Column("documents", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name=op.f("fk_key_usage_key_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key_id", "day", name=op.f("pk_key_usage")),
    )
    op.create_table(
        "uploads",
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_uploads")),
    )
    op.create_index("ix_uploads_expires_at", "uploads", ["expires_at"], unique=False)


def downgrade() -> None:
    op.drop_table("uploads")
    op.drop_table("key_usage")
    op.drop_column("api_keys", "max_pages_per_day")
    op.drop_column("api_keys", "max_open_pages")
    op.drop_index("ix_chunks_tried", table_name="chunks")
    op.drop_index("ix_chunks_running", table_name="chunks")
    op.drop_index("ix_chunks_due", table_name="chunks")
    op.drop_constraint(
        "uq_chunks_document_id_generation_page_start_page_stop", "chunks", type_="unique"
    )
    # What the earlier release does not know: chunks that others took the place of.
    op.execute("DELETE FROM chunks WHERE state IN ('isolated', 'cancelled')")
    _replace_check("chunks", _CHUNK_STATES)
    op.create_unique_constraint(
        op.f("uq_chunks_document_id_generation_page_start"),
        "chunks",
        ["document_id", "generation", "page_start"],
    )
    for column in ("is_isolated", "priority", "lane", "tenant"):
        op.drop_column("chunks", column)
    op.create_index("ix_chunks_dispatch_after", "chunks", ["dispatch_after"], postgresql_where=_DUE)
    op.drop_index("ix_documents_finished", table_name="documents")
    op.drop_index("ix_documents_open", table_name="documents")
    for index in ("tried", "assembly_due", "split_due"):
        op.drop_index(f"ix_documents_{index}", table_name="documents")
    # Without what may be gone from storage, and with nobody who looks for it.
    op.execute(
        "UPDATE documents SET state = 'cancelled', error_code = 'cancelled', result_key = NULL,"
        " result_size_bytes = NULL, dispatch_after = NULL, lease_expires_at = NULL,"
        " finished_at = coalesce(finished_at, now()) WHERE state = 'deleting'"
    )
    _replace_check("documents", _DOCUMENT_STATES)
    for column in ("by_chord", "pixel_estimate", "page_estimate", "key_id", "lane"):
        op.drop_column("documents", column)
    op.create_index(
        "ix_documents_dispatch_after", "documents", ["dispatch_after"], postgresql_where=_DUE
    )


def _extend_documents() -> None:
    op.add_column(
        "documents",
        sa.Column(
            "lane",
            sa.Text(),
            sa.Computed("coalesce((batch_id)::text, ''::text)", persisted=True),
            nullable=False,
        ),
    )
    op.add_column("documents", sa.Column("key_id", sa.Text(), nullable=True))
    op.add_column(
        "documents",
        sa.Column("page_estimate", sa.Integer(), server_default=sa.text("1"), nullable=False),
    )
    op.add_column(
        "documents",
        sa.Column("pixel_estimate", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
    )
    op.add_column(
        "documents",
        sa.Column("by_chord", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.execute("UPDATE documents SET page_estimate = page_count WHERE page_count IS NOT NULL")
    # A chord that is under way still calls the assembly.
    op.execute("UPDATE documents SET by_chord = true WHERE state = 'recognizing'")
    _replace_check("documents", f"{_DOCUMENT_STATES}, 'deleting'")
    op.drop_index("ix_documents_dispatch_after", table_name="documents")
    for index, due in (("split_due", _SPLIT_DUE), ("assembly_due", _ASSEMBLY_DUE)):
        op.create_index(
            f"ix_documents_{index}",
            "documents",
            ["priority", "tenant", "lane", "dispatch_after"],
            postgresql_where=due,
        )
    op.create_index("ix_documents_tried", "documents", ["dispatch_after"], postgresql_where=_TRIED)
    op.create_index(
        "ix_documents_open",
        "documents",
        ["tenant", "key_id"],
        postgresql_include=["priority", "page_estimate", "pixel_estimate", "created_at"],
        postgresql_where=_OPEN,
    )
    op.create_index(
        "ix_documents_finished",
        "documents",
        ["finished_at"],
        postgresql_include=["page_estimate"],
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )


def _extend_chunks() -> None:
    for column in ("tenant", "lane", "priority"):
        op.add_column("chunks", sa.Column(column, sa.Text(), nullable=True))
    op.execute(
        "UPDATE chunks SET tenant = d.tenant, lane = d.lane, priority = d.priority"
        " FROM documents d WHERE d.id = chunks.document_id"
    )
    for column in ("tenant", "lane", "priority"):
        op.alter_column("chunks", column, nullable=False)
    op.add_column(
        "chunks",
        sa.Column("is_isolated", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    _replace_check("chunks", f"{_CHUNK_STATES}, 'isolated', 'cancelled'")
    op.drop_constraint("uq_chunks_document_id_generation_page_start", "chunks", type_="unique")
    op.create_unique_constraint(
        op.f("uq_chunks_document_id_generation_page_start_page_stop"),
        "chunks",
        ["document_id", "generation", "page_start", "page_stop"],
    )
    op.drop_index("ix_chunks_dispatch_after", table_name="chunks")
    op.create_index(
        "ix_chunks_running",
        "chunks",
        ["document_id"],
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "ix_chunks_due",
        "chunks",
        ["priority", "tenant", "lane", "dispatch_after"],
        postgresql_where=_DUE,
    )
    op.create_index("ix_chunks_tried", "chunks", ["dispatch_after"], postgresql_where=_TRIED)


def _replace_check(table: str, states: str) -> None:
    op.drop_constraint(op.f(f"ck_{table}_state_known"), table, type_="check")
    op.create_check_constraint(op.f(f"ck_{table}_state_known"), table, f"state IN ({states})")
