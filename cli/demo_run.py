"""The samples on their way through a running stack, and what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.markup import escape

from cli.api_views import DocumentStatus
from cli.client import UNREACHABLE, ApiClient
from cli.console import notices, output
from cli.counting import count_of
from cli.document_list import pages_of
from cli.errors import ApiError
from cli.progress import progress_bar
from cli.sample_check import refusal_problems, result_problems
from cli.samples import Sample, write_samples
from cli.stack.state import StackState
from cli.status import watch_documents

BATCH_NAME: Final = "Samples"
_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """What became of one sample.

    Attributes:
        filename: its name.
        state: where its document ended; ``refused`` when the API did not take it.
        pages: done, of how many.
        error: code and sentence, where it ended with one.
        address: of its result; empty where there is none.
        problems: why this is not what had to come out; empty when it is.
    """

    filename: str
    state: str
    pages: str
    error: str
    address: str
    problems: tuple[str, ...]


@dataclass(slots=True)
class DemoProgress:
    """How far the samples are, for whoever ends before them; ``read`` are those that ended."""

    samples: int = 0
    read: int = 0

    def say_stopped(self) -> None:
        """Say what is done where it was stopped, and that nothing of it is lost."""
        verb = "is" if self.read == 1 else "are"
        notices().print(
            f"Stopped: {self.read} of {count_of(self.samples, 'sample')} {verb} read. They are"
            " kept: `pagefleet up` goes on\nwith what was sent, and `pagefleet status` shows it.",
            markup=False,
        )


def run_samples(stack: StackState, home: Path, progress: DemoProgress) -> list[DemoOutcome]:
    """Make the samples, send them as one batch, follow them to their ends, check each.

    Args:
        stack: that reads them.
        home: where they are made.
        progress: told how far they are.

    Raises:
        ApiError: the API does not answer or refuses what it must take.
        OSError: the samples cannot be written.
    """
    samples = write_samples(home / "samples")
    with ApiClient(stack.api_url, stack.api_key) as client:
        progress.samples = len(samples)
        sent, refused = _send(client, samples)

        def note(documents: Sequence[DocumentStatus]) -> None:
            progress.read = len(refused) + sum(each.is_final for each in documents)

        watched = watch_documents(list(sent.values()), client=client, on_look=note)
        ended = {each.id: each for each in watched}
        return [
            _refused(sample, refused[sample.path])
            if sample.path in refused
            else _ended(sample, ended[sent[sample.path].id], client)
            for sample in samples
        ]


def show_outcomes(outcomes: Sequence[DemoOutcome]) -> None:
    """Print what became of each sample, and where its result is."""
    console = output()
    for outcome in outcomes:
        mark = "[red]WRONG[/red]" if outcome.problems else "[green]ok[/green]   "
        console.print(f"{mark}  {escape(outcome.filename)}: {outcome.state}, pages {outcome.pages}")
        # Unwrapped, so that an address can be copied.
        for line in filter(None, (outcome.address, outcome.error, *outcome.problems)):
            console.print(f"       {line}", markup=False)
    good = sum(not outcome.problems for outcome in outcomes)
    console.print(f"\n{good} of {len(outcomes)} samples ended as they must.\n")


def show_addresses(stack: StackState) -> None:
    """Print where the servers of a running stack are, and what opens them."""
    output().print(
        f"Viewer  {stack.viewer_url}\n"
        f"API     {stack.api_url}, described at {stack.api_url}/openapi.json\n"
        f"Flower  {stack.flower_url}, user {stack.flower_user}, password {stack.flower_password}\n"
        f'Result  curl -H "Authorization: Bearer {stack.api_key}" ADDRESS\n',
        markup=False,
    )


def _send(
    client: ApiClient, samples: Sequence[Sample]
) -> tuple[dict[Path, DocumentStatus], dict[Path, ApiError]]:
    """Send all samples into one batch.

    Returns:
        The documents of those that were taken, and the refusals of the others.
    """
    sent: dict[Path, DocumentStatus] = {}
    refused: dict[Path, ApiError] = {}
    batch = client.create_batch(BATCH_NAME)
    notices().print(f"Batch {batch.id}: sending {count_of(len(samples), 'document')}.")
    with progress_bar("documents") as bar:
        for done, sample in enumerate(samples):
            bar.show(f"sending {sample.path.name}", done, len(samples))
            try:
                sent[sample.path] = client.submit(sample.path, batch_id=batch.id)
            except ApiError as error:
                if error.code == UNREACHABLE or (error.status or 0) >= _SERVER_ERROR:
                    raise
                refused[sample.path] = error
    return sent, refused


def _refused(sample: Sample, error: ApiError) -> DemoOutcome:
    return DemoOutcome(
        filename=sample.path.name,
        state="refused",
        pages="-",
        error=f"{error.code}: {error.message}",
        address="",
        problems=tuple(refusal_problems(sample, error.code)),
    )


def _ended(sample: Sample, document: DocumentStatus, client: ApiClient) -> DemoOutcome:
    if document.error_code is not None:
        problems = refusal_problems(sample, document.error_code)
    elif document.result_path is None:
        problems = [f"ended as {document.state} without a result"]
    else:
        problems = result_problems(sample, client.result(document))
    return DemoOutcome(
        filename=document.filename,
        state=document.state,
        pages=pages_of(document),
        error=f"{document.error_code}: {document.error_message}" if document.error_code else "",
        address=f"{client.address}{document.result_path}" if document.result_path else "",
        problems=tuple(problems),
    )
