"""The settings of files that clients put into storage themselves."""

from pydantic import Field

from storage.part_uploads import MAX_PART_BYTES, MIN_PART_BYTES
from workers.settings import CheckedSettings


class DirectUploadSettings(CheckedSettings):
    """Where parts are sent, how large they are, and how long everything about them lasts."""

    api_direct_upload_storage_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/\s?#]+$",
        description="address of the object storage for clients that send files straight to it; "
        "none: `PAGEFLEET_S3_ENDPOINT_URL`",
    )
    api_direct_upload_part_bytes: int = Field(
        default=16 * 2**20,
        ge=MIN_PART_BYTES,
        le=MAX_PART_BYTES,
        description="size of the parts; larger ones where a file would have more than 10,000",
    )
    # Long enough to send a part over a slow line, and for all of one answer one after the other.
    api_direct_upload_address_s: int = Field(
        default=900,
        ge=1,
        le=604_800,
        description="for how long the address of a part is good; a new one can be had",
    )
    api_direct_upload_expires_s: int = Field(
        default=86_400,
        ge=60,
        le=2_592_000,
        description="for how long a file may take to storage; then what was sent of it is removed",
    )
    api_max_direct_uploads: int = Field(
        default=1_000,
        ge=1,
        description="files that are on their way to storage, of one tenant",
    )
