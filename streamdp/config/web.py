"""The section `web`: where the page listens, and its access rules."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from streamdp.sections.secrets import Secret, SecretFile
from streamdp.sections.section import Section

SHORTEST_TOKEN = 16
"""Characters that a token has at least."""

_LISTEN = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})")
_HEADER = r"^[A-Za-z][A-Za-z0-9-]{0,62}$"


def _network(value: object) -> str:
    try:
        return str(ipaddress.ip_network(str(value)))
    except ValueError:
        raise ValueError(
            "this is an address or a network, such as 10.0.0.5 or 10.0.0.0/24"
        ) from None


Network = Annotated[str, BeforeValidator(_network), WithJsonSchema({"type": "string"})]
"""An address, or a network of them."""


class Proxy(Section):
    """A proxy in front of the page that has checked who looks."""

    header: str = Field(
        pattern=_HEADER,
        description="HTTP header in which the proxy passes the name of the authenticated user.",
        examples=["X-Forwarded-User"],
    )
    addresses: tuple[Network, ...] = Field(
        min_length=1,
        description="Addresses or networks of the proxy. The header is trusted from these only.",
        examples=[["10.0.0.5", "10.0.1.0/24"]],
    )


class Web(Section):
    """A read-only page over the store, with metrics and an API."""

    listen: str = Field(
        default="127.0.0.1:8765",
        description="Address and port to listen on. An address other than loopback needs a token"
        " or a proxy. Default 127.0.0.1:8765.",
        examples=["0.0.0.0:8765"],
    )
    token: Secret | None = Field(
        default=None,
        description="Secret that a visitor must give as a bearer token or password; at least 16"
        " characters. From the environment or a file. Default: none.",
        examples=["${STREAMDP_TOKEN}", {"file": "/run/secrets/token"}],
    )
    proxy: Proxy | None = Field(
        default=None, description="Reverse proxy that authenticates visitors. Default: none."
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Host names under which the page is reached, besides that of `listen`."
        " Default: none.",
        examples=[["stats.example.org"]],
    )
    requests_per_second: int = Field(
        default=100,
        ge=1,
        le=100_000,
        strict=True,
        description="Most requests a second from one address; more are refused. Default 100.",
    )

    @field_validator("listen")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        match = _LISTEN.fullmatch(value)
        if match is None or int(match[2]) > 65_535:
            raise ValueError("write address and port: 127.0.0.1:8765, or [::1]:8765")
        return value

    @field_validator("token")
    @classmethod
    def _is_long(cls, value: SecretFile | SecretStr | None) -> SecretFile | SecretStr | None:
        if isinstance(value, SecretStr) and len(value.get_secret_value()) < SHORTEST_TOKEN:
            raise ValueError(f"a token has at least {SHORTEST_TOKEN} characters")
        return value

    @model_validator(mode="after")
    def _others_are_known(self) -> Web:
        if not self.is_loopback() and self.token is None and self.proxy is None:
            raise ValueError("a page that other machines reach needs a token or a proxy")
        return self

    def host(self) -> str:
        """The address without its port."""
        return self.listen.rpartition(":")[0].strip("[]")

    def port(self) -> int:
        """The port."""
        return int(self.listen.rpartition(":")[2])

    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host()).is_loopback
        except ValueError:
            return False
