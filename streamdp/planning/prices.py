"""The part of `streamdp plan` that is about prices: what a release or a run of a gate costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.types import Batch, Charge, ReleaseKind


class Prices:
    """Price of each task, and the kind of each release; both are made once.

    Args:
        configuration: Of the tasks.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._kinds: dict[str, ReleaseKind] = {}
        self._charges: dict[str, Charge] = {}

    def kind(self, release: str) -> ReleaseKind:
        """The kind of a release."""
        from streamdp import wiring

        if release not in self._kinds:
            self._kinds[release] = wiring.release_kind(self._configuration, release)
        return self._kinds[release]

    def charge(self, task: str, batch: Batch) -> Charge:
        """Price of a release, or of a run of a gate, in both measures; `batch` is any of it."""
        if task not in self._charges:
            self._charges[task] = self._charge(task, batch)
        return self._charges[task]

    def _charge(self, task: str, batch: Batch) -> Charge:
        from streamdp import wiring
        from streamdp.kinds.charging import UnitCharging

        if task in self._configuration.all_gates():
            return wiring.gate_kind(task, self._configuration).charge()
        kind = self.kind(task)
        plan = kind.plan(kind.init(), batch)
        return UnitCharging(self._configuration.privacy.unit.bound()).charge(plan)
