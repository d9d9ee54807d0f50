"""`python -m streamdp`."""

from streamdp.cli import main

main()
