"""The task graph as a picture: layout, SVG, Graphviz, and a page to explore it."""
