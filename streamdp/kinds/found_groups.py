"""A release kind whose groups are the keys that another job has released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamdp.errors import WaitingError
from streamdp.kinds.charging import Group
from streamdp.types import (
    Batch,
    Column,
    Entropy,
    Explains,
    History,
    Json,
    Lesson,
    Outcome,
    Plan,
    ReadsReleases,
    ReleaseKind,
    Row,
    jobs_read,
)


@dataclass(frozen=True, slots=True)
class FoundGroups:
    """A kind of groups that come and go.

    Args:
        of: Makes the kind for some groups.
        like: The same for one group of no name: its price, columns and learned states are those of
            all others.
        job: Finds the groups.
        read: Reads them off the rows of one of its releases, at most so many as are configured.

    Privacy: the groups of a batch follow from what the job released: before it, where batches are
    windows of time; of any other batch, where they are files, which have no order. What it found
    may have come of the batch itself: the loss of both is that of their adaptive composition, the
    sum of their prices, and each is charged. A record is in one group at most whatever the groups
    are, so the price is that of one group, however many there are. Records of other groups do not
    count.
    """

    of: Callable[[tuple[Group, ...]], ReleaseKind]
    like: ReleaseKind
    job: str
    read: Callable[[Sequence[Row]], tuple[Group, ...]]

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self.like.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the kind, with those of groups."""
        return self.like.columns

    @property
    def jobs(self) -> tuple[str, ...]:
        """The job that finds groups, and those that the kind reads."""
        others = jobs_read(self.like)
        return (self.job, *(job for job in others if job != self.job))

    def informed(self, past: Mapping[str, tuple[Row, ...]]) -> ReleaseKind:
        """The kind of one batch.

        Raises:
            WaitingError: No group was found before it.
        """
        groups = self.read(past.get(self.job, ()))
        if not groups:
            raise WaitingError(
                f"no group was found before this batch, so it is not released: {self.job} finds"
                " them",
                hint="nothing was spent; the first release is that of the batch after which groups"
                " are known",
            )
        made = self.of(groups)
        return made.informed(past) if isinstance(made, ReadsReleases) else made

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what the kind has learned of all groups together."""
        return self.like.lessons(history) if isinstance(self.like, Explains) else ()

    def signature(self) -> Json:
        """Return the kind's signature: groups come and go, and what was learned of them stays."""
        return self.like.signature()

    def init(self) -> Json:
        """No state of any group."""
        return self.like.init()

    def plan(self, state: Json, batch: Batch) -> Plan:
        """The plan of one group, whose price is that of all."""
        return self.like.plan(state, batch)

    def draw(self, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        """The draw of that plan."""
        return self.like.draw(plan, statistic, entropy)

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The next state of that plan."""
        return self.like.learn(state, plan, outcome)

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The rows of that plan."""
        return self.like.publish(state, outcome)
