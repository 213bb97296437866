"""Metrics of the API on real servers, as Prometheus reads them."""

import httpx

from api.fleet_metrics import FleetMetrics
from db.engine import Database
from tests.support.api_server import (
    RunningApi,
    Serve,
    client_of,
    free_port,
    make_key,
    served_in_process,
    wait_until,
)
from tests.support.plain_http import NO_TLS
from tests.support.rows import add_document
from tests.support.scraped import Scraped, scrape
from tests.support.services import S3Bucket

PDF = b"%PDF-1.7\n" + bytes(2_000)


def scrape_counted(url: str) -> Scraped:
    """Return what a process shows once it has counted; whoever asks first does not wait long."""
    found: list[Scraped] = []

    def has_counted() -> bool:
        found.append(scrape(url))
        return found[-1].find("pagefleet_queue_pages") is not None

    wait_until(has_counted, what="the first count")
    return found[-1]


def pages_to_split(metrics: FleetMetrics) -> float:
    return sum(
        sample.value
        for family in metrics.collect()
        for sample in family.samples
        if sample.name == "pagefleet_queue_pages" and sample.labels["queue"] == "split"
    )


def test_a_document_that_waits_is_shown_to_whoever_asks_without_a_key(api: RunningApi) -> None:
    api.client.post("/v1/documents", files={"file": ("a.pdf", PDF)}).raise_for_status()

    scraped = scrape_counted(api.url)

    assert scraped.value("pagefleet_queue_pages", queue="split") >= 1
    assert scraped.value("pagefleet_documents_open", state="queued") == 1
    assert scraped.value("pagefleet_queue_oldest_seconds", queue="split") < 60
    assert scraped.value("pagefleet_fleet_count_age_seconds") < 60


def test_no_tenant_no_key_and_no_name_is_shown(serve: Serve, database: Database) -> None:
    key = make_key(database, "tenant-of-secrets")
    with serve() as api, client_of(api.url, key) as client:
        document_id = client.post("/v1/documents", files={"file": ("secret-name.pdf", PDF)}).json()[
            "id"
        ]
        client.get(f"/v1/documents/{document_id}")

        shown = scrape(api.url).text

    assert "pagefleet_http_requests_total" in shown
    for secret in ("tenant-of-secrets", "secret-name", document_id, key.split("_")[1]):
        assert secret not in shown


def test_counting_is_not_repeated_for_each_who_asks(database: Database) -> None:
    metrics = FleetMetrics(database.transaction, cache_s=3_600)
    wait_until(lambda: bool(list(metrics.collect())), what="the first count")
    with database.transaction() as session:
        add_document(session)

    anew = FleetMetrics(database.transaction)
    wait_until(lambda: pages_to_split(anew) == 1, what="a count of the document")

    assert pages_to_split(metrics) == 0


def test_the_process_shows_them_at_a_port_of_their_own_and_nowhere_else(
    database_url: str, redis_url: str, s3_bucket: S3Bucket
) -> None:
    port = free_port()
    with served_in_process(
        database_url=database_url,
        redis_url=redis_url,
        bucket=s3_bucket,
        PAGEFLEET_METRICS_PORT=str(port),
    ) as (url, process):
        scraped = scrape_counted(f"http://127.0.0.1:{port}")
        at_the_api = httpx.get(f"{url}/metrics", trust_env=False, verify=NO_TLS)

        assert scraped.value("pagefleet_build_info", program="api") == 1
        assert scraped.value("process_resident_memory_bytes") > 1_000_000
        assert scraped.value("pagefleet_queue_pages", queue="recognize") == 0
        assert at_the_api.status_code == 404
        assert process.poll() is None


def test_a_port_that_is_taken_does_not_keep_the_process_from_serving(
    database_url: str, redis_url: str, s3_bucket: S3Bucket, api: RunningApi
) -> None:
    taken = api.url.rpartition(":")[2]
    with served_in_process(
        database_url=database_url,
        redis_url=redis_url,
        bucket=s3_bucket,
        PAGEFLEET_METRICS_PORT=taken,
    ) as (url, _):
        assert httpx.get(f"{url}/livez", trust_env=False, verify=NO_TLS).is_success


def test_a_store_that_is_away_is_counted(
    database_url: str, redis_url: str, s3_bucket: S3Bucket
) -> None:
    with served_in_process(
        database_url=database_url,
        redis_url=redis_url,
        bucket=s3_bucket,
        PAGEFLEET_S3_ENDPOINT_URL=f"http://127.0.0.1:{free_port()}",
    ) as (url, _):
        before = scrape(url).find("pagefleet_storage_errors_total", bucket="own")

        httpx.get(f"{url}/readyz", trust_env=False, verify=NO_TLS, timeout=30)

        def counted() -> bool:
            return bool(scrape(url).find("pagefleet_storage_errors_total", kind="unavailable"))

        wait_until(counted, what="the probe of the store to fail")
    assert before == 0
