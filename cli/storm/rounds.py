"""One storm after the other over one fleet, each with a verdict."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from bench.errors import BenchError
from bench.faults.s3_proxy import Weather
from bench.process_usage import resident_bytes
from cli.api_views import DocumentStatus
from cli.client import UNREACHABLE, ApiClient
from cli.errors import ApiError
from cli.storm import broker
from cli.storm.clients import StormClients
from cli.storm.documents import documents_of_round, turns
from cli.storm.faults import StormFaults
from cli.storm.fleet import StormFleet, resident_mib
from cli.storm.plan import DROPPED_PUBLISHES, plan_faults
from cli.storm.rows import StormRows
from cli.storm.servers import StormServers
from cli.storm.verdict import FINAL_STATES, Outcome, Sent, comparable, digest_of, judge
from db.errors import DatabaseError

Show = Callable[[str, int, int, str], None]
"""Takes what is going on, documents done, of how many, and a note."""

_TICK_S: Final = 0.1
_ASK_EVERY_S: Final = 1.0
# Without progress for so long, nothing comes any more: a row that was sent seven times waits for
# two minutes before it is sent again.
_PATIENCE_S: Final = 240.0
_PATIENCE_ALONE_S: Final = 25.0
_SETTLE_S: Final = 60.0
_EXPECTED_TIMEOUT_S: Final = 600.0
_ASK_AGAIN: Final = 10
_BYTES_PER_MIB: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class StormOptions:
    """What a storm is like.

    Attributes:
        documents: that are sent.
        duration_s: for which faults happen.
        seed: draws the faults.
        kinds: of faults.
        pace: 1, or how many times as far apart faults are.
        drop_share: of messages that vanish, where that is among the kinds.
        with_reconciler: False: nobody repairs.
        is_light: no scans of whole pages.
    """

    documents: int
    duration_s: float
    seed: int
    kinds: Sequence[str]
    pace: float
    drop_share: float
    with_reconciler: bool
    is_light: bool


class Storm:
    """A fleet, its servers, and what is expected of them.

    Args:
        fleet: started.
        servers: likewise.
        files: path of each sample by its name.
        drop_file: says what share of messages vanishes.
        out: for what went wrong, and the log of faults.
        show: told how far it is.
        stop: ends it.
    """

    def __init__(
        self,
        fleet: StormFleet,
        servers: StormServers,
        *,
        files: Mapping[str, Path],
        drop_file: Path,
        out: Path,
        show: Show,
        stop: threading.Event,
    ) -> None:
        self._fleet = fleet
        self._servers = servers
        self._files = files
        self._drop_file = drop_file
        self._out = out
        self._show = show
        self._stop = stop
        self._rows = StormRows(servers.database)
        self._expected: dict[str, Outcome] = {}
        self._results: dict[str, dict[str, Any]] = {}

    def prepare(self) -> None:
        """Count moves from now on, and let the fleet read each file once, without any fault.

        Raises:
            BenchError: it does not finish, or the storm is stopped.
        """
        self._rows.count_moves()
        self._set_drop_share(0)
        with self._client() as client:
            sent = {
                name: client.submit(path, idempotency_key=f"expected {name}")
                for name, path in self._files.items()
            }
            deadline_s = time.monotonic() + _EXPECTED_TIMEOUT_S
            while len(self._expected) < len(sent):
                if time.monotonic() > deadline_s:
                    raise BenchError("the fleet does not finish without faults; its logs say why")
                for name in sent.keys() - self._expected.keys():
                    self._note_expected(name, client.document(sent[name].id), client)
                self._show("without faults", len(self._expected), len(sent), "")
                self._tick(_TICK_S)

    def run_round(self, number: int, options: StormOptions) -> dict[str, Any]:
        """Let one storm pass over the fleet, and return its record with the verdict.

        Raises:
            BenchError: the storm is stopped.
            ServerStartError: a server or program cannot be started again.
        """
        started_s = time.monotonic()
        since = self._rows.now()
        sent = documents_of_round(number, options.documents, turns(is_light=options.is_light))
        clients = StormClients(
            self._servers.api_url,
            self._servers.api_key,
            files=self._files,
            documents=sent,
            over_s=0.9 * options.duration_s,
            all_interactive=not options.with_reconciler,
        )
        faults = StormFaults(
            self._fleet, self._servers, log_file=self._out / f"faults-{number}.jsonl"
        )
        dropped_before = self._dropped()
        self._fleet.restarts = dict.fromkeys(self._fleet.restarts, 0)
        self._servers.proxy.troubled = 0
        clients.start()
        try:
            self._blow(options, faults, sent, since)
            storm_s = time.monotonic() - started_s
            finished_in_storm = self._rows.finished(since)
            self._wait_final(clients, sent, since, options)
        finally:
            clients.stop()
        verdict = self._verdict(sent, since)
        if dropped := self._dropped() - dropped_before:
            faults.fired[DROPPED_PUBLISHES] = dropped
        return {
            "round": number,
            "seed": options.seed,
            **verdict,
            "faults": dict(sorted(faults.fired.items())),
            "requests_to_storage_troubled": self._servers.proxy.troubled,
            "restarts": dict(self._fleet.restarts),
            "finished_in_storm": finished_in_storm,
            "storm_s": round(storm_s, 1),
            "total_s": round(time.monotonic() - started_s, 1),
            "resident_mib": self._resident_mib(),
            "rows": self._rows.sizes(),
            "objects": self._servers.object_count(),
            "broker_keys": broker.key_count(self._servers.valkey.url()),
        }

    def _blow(
        self, options: StormOptions, faults: StormFaults, sent: Sequence[Sent], since: datetime
    ) -> None:
        if DROPPED_PUBLISHES in options.kinds:
            self._set_drop_share(options.drop_share)
        faults.begin(
            plan_faults(options.seed, options.duration_s, options.kinds, pace=options.pace)
        )
        ends_s = time.monotonic() + options.duration_s
        asked_s = 0.0
        while time.monotonic() < ends_s or not faults.is_over:
            faults.look()
            if time.monotonic() - asked_s > _ASK_EVERY_S:
                asked_s = time.monotonic()
                left_s = max(0, round(ends_s - asked_s))
                note = f"{faults.fired.total()} faults, {left_s} s left"
                self._show_round("storm", sent, since, note)
            self._tick(_TICK_S)
        self._set_drop_share(0)
        self._servers.proxy.weather = Weather()

    def _wait_final(
        self, clients: StormClients, sent: Sequence[Sent], since: datetime, options: StormOptions
    ) -> None:
        """Return when all is final, or when nothing has become so for long."""
        patience_s = _PATIENCE_S if options.with_reconciler else _PATIENCE_ALONE_S
        best, moved_s = -1, time.monotonic()
        while time.monotonic() - moved_s < patience_s:
            done = self._show_round("calm", sent, since, "faults have ended")
            if clients.is_done and done >= sum(bool(each.ids) for each in sent):
                return
            if done > best:
                best, moved_s = done, time.monotonic()
            self._tick(_ASK_EVERY_S)

    def _verdict(self, sent: Sequence[Sent], since: datetime) -> dict[str, Any]:
        found = self._rows.found(since)
        is_final = all(row.state in FINAL_STATES for row in found)
        if is_final:
            self._settle()
        with self._client() as client:
            samples = {each: one.sample for one in sent for each in one.ids}
            found = [
                replace(row, digest=self._digest(row.id, samples.get(row.id), client))
                for row in self._rows.found(since)
            ]
        # Where all is final nobody has to look at anything; else what is left may be under way.
        stuck = self._rows.open_rows(is_overdue=not is_final)
        return judge(sent, found, stuck, expected=self._expected).record()

    def _settle(self) -> None:
        """Wait until nothing is left to look at, as for the chunks of a document that failed."""
        ends_s = time.monotonic() + _SETTLE_S
        while time.monotonic() < ends_s and self._rows.open_rows(is_overdue=False):
            self._tick(_ASK_EVERY_S)

    def _digest(self, document_id: UUID, sample: str | None, client: ApiClient) -> str | None:
        document = self._ask(lambda: client.document(document_id))
        if document.result_path is None:
            return None
        result = comparable(self._ask(lambda: client.result(document)))
        digest = digest_of(result)
        if sample is not None and digest != self._expected[sample].digest:
            self._keep_difference(document_id, sample, result)
        return digest

    def _keep_difference(self, document_id: UUID, sample: str, result: dict[str, Any]) -> None:
        folder = self._out / "differences"
        folder.mkdir(exist_ok=True)
        for name, each in ((f"{document_id}", result), (sample, self._results.get(sample))):
            text = json.dumps(each, indent=1, sort_keys=True, ensure_ascii=False)
            (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")

    def _note_expected(self, name: str, document: DocumentStatus, client: ApiClient) -> None:
        if not document.is_final:
            return
        digest = None
        if document.result_path is not None:
            self._results[name] = comparable(client.result(document))
            digest = digest_of(self._results[name])
        self._expected[name] = Outcome(document.state, document.error_code, digest)

    def _show_round(self, what: str, sent: Sequence[Sent], since: datetime, note: str) -> int:
        """Show how far a round is, and return how many documents are final; 0 while unknown."""
        done = 0
        with suppress(DatabaseError):
            done = self._rows.finished(since)
        accepted = sum(bool(each.ids) for each in sent)
        self._show(what, done, len(sent), f"{accepted} accepted, {note}")
        return done

    def _tick(self, pause_s: float) -> None:
        """Keep the fleet running for a moment.

        Raises:
            BenchError: the storm is to stop.
        """
        self._fleet.tend()
        if self._stop.wait(pause_s):
            raise BenchError("stopped before the storm was over")

    def _ask(self, question: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the question returns
        """Ask the API, again where it does not answer: it may have been killed last."""
        for _ in range(_ASK_AGAIN):
            try:
                return question()
            except ApiError as error:
                if error.code != UNREACHABLE and (error.status or 0) < 500:  # noqa: PLR2004 - HTTP
                    raise
                self._tick(_ASK_EVERY_S)
        return question()

    def _client(self) -> ApiClient:
        return ApiClient(self._servers.api_url, self._servers.api_key)

    def _set_drop_share(self, share: float) -> None:
        partial = self._drop_file.with_suffix(".partial")
        partial.write_text(str(share), encoding="ascii")
        partial.replace(self._drop_file)

    def _dropped(self) -> int:
        dropped = self._drop_file.with_name(self._drop_file.name + ".dropped")
        return dropped.stat().st_size if dropped.exists() else 0

    def _resident_mib(self) -> dict[str, float]:
        servers = {
            server.name: resident_mib(server.pid)
            for server in self._servers.all()
            if server.pid is not None
        }
        own = round(resident_bytes(os.getpid()) / _BYTES_PER_MIB, 1)
        return {**self._fleet.resident_mib(), **servers, "storm": own}


def is_held(record: Mapping[str, Any]) -> bool:
    """Tell whether a round's verdict is that nothing broke."""
    return bool(record["verdict"] == "HELD")
