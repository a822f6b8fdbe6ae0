"""The algorithms under a mask: empty tiles are skipped, and sums run over the pairs that attend."""
