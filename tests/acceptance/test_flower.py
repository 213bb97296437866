"""Flower as the dashboard of a fleet: real workers of the embedded stack, looked at over HTTP."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cli.samples import Sample
from tests.support.embedded_stack import EmbeddedStack, embedded_stack
from tests.support.fleet import wait_for
from tests.support.flower import Flower, addresses_that_change
from tests.support.guides import table_rows
from workers.celeryconfig import ASSEMBLE_TASK, RECOGNIZE_TASK, SPLIT_TASK

pytestmark = pytest.mark.timeout(900)

LIMIT_S = 500.0
BATCH = "hush, a batch"
WORKERS = {"export", "recognize", "split+assemble"}
# Born-digital, scanned, and one that ends with an error: each takes another way.
READ = ("letters.pdf", "scanned-letters.pdf", "encrypted.pdf")
ARGUMENTS = {
    SPLIT_TASK: r"\('doc=(?P<doc>[0-9a-f-]{36})',\)",
    RECOGNIZE_TASK: r"\('doc=(?P<doc>[0-9a-f-]{36})', 'pages=\d+-\d+'\)",
    ASSEMBLE_TASK: r"\('doc=(?P<doc>[0-9a-f-]{36})', 'generation=1'\)",
}
# What the calls that change something ask for, all of it at once.
CHANGES = {"n": "1", "min": "1", "max": "4", "queue": "recognize", "ratelimit": "1/m"}
CHANGES |= {"hard": "5", "soft": "5", "terminate": "true"}
DOCUMENTED = {
    name: {row[0].strip("`") for row in table_rows("flower.md") if re.fullmatch(pattern, row[0])}
    for name, pattern in (("states", r"`[A-Z]+`"), ("tasks", r"`[a-z_]+\.[a-z_]+`"))
}


@pytest.fixture(scope="module")
def stack(services_folder: Path) -> Iterator[EmbeddedStack]:
    with embedded_stack(services_folder) as stack:
        yield stack


@pytest.fixture(scope="module")
def flower(stack: EmbeddedStack) -> Flower:
    """The stack's, once it knows all workers."""
    state = stack.state
    flower = Flower(state.flower_url, (state.flower_user, state.flower_password))
    wait_for("the workers in Flower", lambda: knows_all_workers(flower), timeout_s=200)
    return flower


def knows_all_workers(flower: Flower) -> bool:
    """Say whether all have answered; one that loads its models may take longer than it is given."""
    workers = flower.json("/api/workers", refresh="true")
    names = {name.partition("@")[0] for name in workers}
    return names == WORKERS and all(
        {"stats", "active_queues", "registered"} <= worker.keys() for worker in workers.values()
    )


def test_a_batch_is_seen_while_it_is_read(
    stack: EmbeddedStack, flower: Flower, samples: dict[str, Sample]
) -> None:
    with stack.client() as client:
        batch = client.create_batch(BATCH)
        sent = {str(client.submit(samples[name].path, batch_id=batch.id).id): name for name in READ}

        states: defaultdict[str, set[str]] = defaultdict(set)
        tasks: dict[str, Any] = {}

        def look() -> bool:
            shown = flower.json("/api/tasks")
            # Of this batch; other tests send documents too.
            tasks.update({
                task_id: task
                for task_id, task in shown.items()
                if any(document_id in task["args"] for document_id in sent)
            })
            for task_id, task in tasks.items():
                states[task_id].add(task["state"])
            return client.batch(batch.id).state == "finished"

        wait_for("the batch", look, timeout_s=LIMIT_S)
        wait_for(
            "the last events",
            lambda: look() and all(task["state"] == "SUCCESS" for task in tasks.values()),
            timeout_s=60,
        )

    assert {task["name"] for task in tasks.values()} == set(ARGUMENTS)
    assert set().union(*states.values()) >= {"STARTED", "SUCCESS"}
    assert set().union(*states.values()) <= DOCUMENTED["states"]
    told = [re.fullmatch(ARGUMENTS[task["name"]], task["args"]) for task in tasks.values()]
    assert all(told), [task["args"] for task in tasks.values()]
    assert {each["doc"] for each in told if each} == set(sent)
    assert {task["kwargs"] for task in tasks.values()} == {"{}"}
    done_by = {task["worker"].partition("@")[0] for task in tasks.values()}
    assert done_by == {"recognize", "split+assemble"}


def test_the_workers_say_which_queues_are_theirs(flower: Flower) -> None:
    workers = flower.json("/api/workers", refresh="true")

    queues = {
        name.partition("@")[0]: {queue["name"] for queue in worker["active_queues"]}
        for name, worker in workers.items()
    }
    assert queues == {
        "recognize": {"recognize"},
        "split+assemble": {"split", "assemble"},
        "export": {"export"},
    }


def test_the_guide_names_each_task_that_a_worker_knows(flower: Flower) -> None:
    workers = flower.json("/api/workers", refresh="true")

    registered = {entry.split()[0] for worker in workers.values() for entry in worker["registered"]}
    assert registered == DOCUMENTED["tasks"]


def test_nothing_private_is_shown(
    stack: EmbeddedStack, flower: Flower, samples: dict[str, Sample]
) -> None:
    with stack.client() as client:
        batch = client.create_batch(BATCH)
        client.submit(samples["letters.pdf"].path, batch_id=batch.id)
        wait_for(
            "the batch",
            lambda: client.batch(batch.id).state == "finished",
            timeout_s=LIMIT_S,
        )
    workers = flower.json("/api/workers", refresh="true")
    pages = ["/", "/tasks", "/broker", "/metrics", "/api/tasks", "/api/workers"]
    pages += [f"/worker/{name}" for name in workers]
    pages += [f"/api/workers?refresh=true&workername={quote(name)}" for name in workers]
    pages += [f"/task/{task_id}" for task_id in flower.json("/api/tasks")]

    shown = {page: flower.get(page).raise_for_status().text for page in pages}

    state = stack.state
    private = [
        *("letters.pdf", BATCH, *samples["letters.pdf"].page_lines[0][:3]),
        *(state.api_key, state.flower_password, state.s3_secret_access_key),
        *(state.redis_url, state.database_url),
        *(password_of(state.redis_url), password_of(state.database_url)),
    ]
    assert [(each, page) for page, text in shown.items() for each in private if each in text] == []


def password_of(url: str) -> str:
    return url.partition("//")[2].partition("@")[0].rpartition(":")[2]


def revoked_at(flower: Flower, worker: str) -> list[str]:
    """Return the ids that a worker would not run; it is asked alone for them."""
    answer = flower.json("/api/workers", refresh="true", workername=worker)
    return list(answer[worker].get("revoked") or ())


def what_stands(flower: Flower) -> dict[str, Any]:
    """Return all that a mutation could change."""
    workers = flower.json("/api/workers", refresh="true")
    return {
        "tasks": sorted(flower.json("/api/tasks")),
        "queues": flower.json("/api/queues/length"),
        **{
            name: (
                worker["stats"]["pid"],
                worker["stats"]["pool"]["max-concurrency"],
                sorted(worker["stats"]["pool"]["processes"]),
                worker["stats"]["pool"]["timeouts"],
                worker["stats"]["total"],
                sorted(queue["name"] for queue in worker["active_queues"]),
                sorted(worker["registered"]),  # with the rate limit of each task
                revoked_at(flower, name),
            )
            for name, worker in workers.items()
        },
    }


@pytest.mark.parametrize("pattern", addresses_that_change())
def test_flower_changes_nothing(flower: Flower, pattern: str) -> None:
    worker = next(name for name in flower.json("/api/workers") if name.startswith("split"))
    target = worker if "/worker/" in pattern else SPLIT_TASK
    before = what_stands(flower)

    answer = flower.ask(
        "POST",
        pattern.replace("(.+)", target),
        auth=flower.account,
        params={"workername": worker, **CHANGES},
        json={"args": ["00000000-0000-0000-0000-000000000000"]},
    )

    assert answer.status_code == 403
    assert what_stands(flower) == before
