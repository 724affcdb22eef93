"""Writers of CUDA marker buffers, one module per layout."""
