"""Packages that are not installed with streamdp, asked for where the configuration needs them."""

from __future__ import annotations

from importlib.util import find_spec

from streamdp.errors import ConfigurationError


def require_extra(module: str, extra: str, where: str) -> None:
    """Refuse an adapter whose library is missing.

    Raises:
        ConfigurationError: Says what to install.
    """
    if find_spec(module) is None:
        raise ConfigurationError(
            f"this needs the package {module}",
            where=where,
            hint=f"pip install 'streamdp[{extra}]'",
        )
