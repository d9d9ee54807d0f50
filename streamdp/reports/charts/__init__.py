"""Charts of releases over time: SVG, picture files, and one line of a terminal."""
