"""Which scope of a key each operation needs: the one place where that stands."""

from collections.abc import Mapping

from db.scopes import Scope

SCOPE_DESCRIPTIONS: Mapping[Scope, str] = {
    Scope.READ: "see documents, batches, pages, results and events",
    Scope.WRITE: "send documents, in parts too, and create batches; cancel and retry both, delete "
    "documents",
    Scope.WEBHOOKS: "see, create and remove webhooks, and what was sent to them",
}

# By the name of the operation, which is its function's and its operationId in the description.
SCOPE_OF_OPERATION: Mapping[str, Scope | None] = {
    **dict.fromkeys(
        (
            "list_batch_documents",
            "list_batches",
            "list_documents",
            "list_pages",
            "read_batch",
            "read_document",
            "read_page",
            "read_page_image",
            "read_report",
            "read_result",
            "stream_events",
        ),
        Scope.READ,
    ),
    **dict.fromkeys(
        (
            "abort_upload",
            "add_objects",
            "cancel_batch",
            "cancel_document",
            "complete_upload",
            "create_batch",
            "create_upload",
            "delete_document",
            "list_upload_parts",
            # Whoever sends a file in parts has to see which have arrived.
            "read_upload",
            "retry_batch",
            "retry_document",
            "submit_document",
        ),
        Scope.WRITE,
    ),
    **dict.fromkeys(
        (
            "create_webhook",
            "delete_webhook",
            "enable_webhook",
            "list_webhook_deliveries",
            "list_webhooks",
            "read_webhook",
            "replay_webhook_delivery",
            "rotate_webhook_secret",
        ),
        Scope.WEBHOOKS,
    ),
    # Whoever sends needs it, and whoever watches; it shows figures of the whole system alone.
    "read_capacity": None,
}
