"""What there is of a noun, by name: that of streamdp, and what other packages offer.

Another package offers one as an entry point of the noun's group:

    [project.entry-points."streamdp.kinds"]
    my-kind = "my_package.my_kind:SPEC"
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from streamdp.errors import ConfigurationError

T = TypeVar("T")


def subclass_of(base: type) -> Callable[[str, Any], Any]:
    """A check for `Registry`: an offer is one if it is a class that inherits from `base`."""

    def checked(name: str, offer: Any) -> Any:
        return offer if isinstance(offer, type) and issubclass(offer, base) else None

    return checked


class Registry(Generic[T]):
    """Finds offers by name, and imports one when it is first asked for.

    Args:
        group: Of the entry points.
        what: One of them, as errors call it.
        own: Where those of streamdp stand, by name; a package cannot take such a name.
        checked: Returns an offer of a name if it is one, else None.
    """

    def __init__(
        self,
        group: str,
        what: str,
        own: Mapping[str, str],
        checked: Callable[[str, Any], T | None],
    ) -> None:
        self.group, self.what, self.own = group, what, own
        self._checked = checked

    def names(self) -> list[str]:
        """All names there are, those of streamdp first."""
        return list(self._offers)

    def find(self, name: str) -> T | None:
        """The offer of a name, or None.

        Raises:
            ConfigurationError: The package that offers it cannot be imported or offers something
                else.
        """
        if name not in self._offers:
            return None
        if name not in self._found:
            self._found[name] = self._loaded(self._offers[name])
        return self._found[name]

    def all(self) -> Iterator[T]:
        """Every offer there is; one that has several names comes as often.

        Raises:
            ConfigurationError: As `find`.
        """
        return (found for name in self._offers if (found := self.find(name)) is not None)

    def forget(self) -> None:
        """Look for offers anew when next asked: packages were installed or removed."""
        vars(self).pop("_offers", None)
        vars(self).pop("_found", None)

    @functools.cached_property
    def _offers(self) -> dict[str, EntryPoint]:
        others = {point.name: point for point in entry_points(group=self.group)}
        own = {name: EntryPoint(name, value, self.group) for name, value in self.own.items()}
        return own | {name: point for name, point in others.items() if name not in own}

    @functools.cached_property
    def _found(self) -> dict[str, T]:
        return {}

    def _loaded(self, point: EntryPoint) -> T:
        try:
            offer = point.load()
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(
                f"the {self.what} {point.name!r} cannot be loaded: {error}",
                where=point.value,
                hint="repair or remove the package that offers it",
            ) from None
        found = self._checked(point.name, offer)
        if found is None:
            raise ConfigurationError(
                f"the entry point {point.name!r} of {self.group} is no {self.what} of that name",
                where=point.value,
            )
        return found
