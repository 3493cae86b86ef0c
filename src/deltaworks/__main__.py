"""`python -m deltaworks`."""

from deltaworks.cli.app import main

main()
