"""Static pictures of a timeline, for papers and pull requests: SVG written here, PNG made of it."""
