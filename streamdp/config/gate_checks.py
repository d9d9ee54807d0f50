"""What must hold between gates and the rest of a configuration."""

from __future__ import annotations

from streamdp.config.gates import DriftTest, Gate
from streamdp.config.model import Configuration
from streamdp.config.refusal import refuse, require_known
from streamdp.config.yaml import Document, Path
from streamdp.kinds.registry import find
from streamdp.privacy.amounts import nano_up


def check_gates(configuration: Configuration, document: Document) -> None:
    """Check the names that gates refer to, and that each job has one gate at most.

    Raises:
        ConfigurationError: The first thing that does not hang together.
    """
    gated: dict[str, str] = {}
    for name, gate in configuration.all_gates().items():
        path = place_of(name, configuration)
        if name in configuration.releases:
            refuse("a release has this name", document, path, "give the gate another one")
        for key, table in (("hold", configuration.releases), ("sinks", configuration.sinks)):
            for index, each in enumerate(getattr(gate, key)):
                require_known(each, table, document, (*path, key, index))
        if gate.source is not None:
            require_known(gate.source, configuration.sources, document, (*path, "source"))
        for index, job in enumerate(gate.release):
            require_known(job, configuration.releases, document, (*path, "release", index))
            if job in gated:
                refuse(
                    f"{job} has the gate {gated[job]} already",
                    document,
                    (*path, "release", index),
                    "a batch is released by one word: take it out of one of them",
                )
            gated[job] = name
        _check_jobs(gate, configuration, document, path)


def place_of(name: str, configuration: Configuration) -> Path:
    """Where a gate stands in the file: in its own section, or at its release."""
    if name in configuration.gates:
        return ("gates", name)
    return ("releases", name.removesuffix(".gate"), "gate")


def gates_of(configuration: Configuration, source: str) -> list[str]:
    """Names of the gates of a source."""
    gates = configuration.all_gates().items()
    return [name for name, gate in gates if configuration.source_of(gate) == source]


def price_of_gates(configuration: Configuration, source: str) -> int:
    """What gates of a source cost a batch, in nano units: it may be in one run of each."""
    gates = configuration.all_gates()
    return sum(nano_up(gates[name].epsilon) for name in gates_of(configuration, source))


def _check_jobs(gate: Gate, configuration: Configuration, document: Document, path: Path) -> None:
    jobs = [configuration.releases[job] for job in gate.release]
    if len({job.source for job in jobs}) > 1:
        refuse(
            "these jobs release batches of different sources",
            document,
            (*path, "release"),
            "write a gate for each source",
        )
    for index, job in enumerate(jobs):
        spec = find(job.kind)
        if index == 0 and spec is not None and spec.cells is None:
            refuse(
                f"a gate cannot test releases of kind {job.kind}",
                document,
                (*path, "release", index),
                "put a release first whose column it can test",
            )
        if job.by:
            refuse(
                "this job releases groups, and a gate asks about a whole batch",
                document,
                (*path, "release", index),
                "write a release and a gate for each group, with where",
            )
    if isinstance(gate.test, DriftTest) and jobs:
        for index, quantile in enumerate(gate.test.quantiles):
            if quantile not in configuration.quantiles_of(gate):
                refuse(
                    f"{gate.release[0]} does not release this quantile",
                    document,
                    (*path, "test", "quantiles", index),
                    "a drift is seen in released quantiles",
                )
